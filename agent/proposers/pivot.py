"""After a failed launch: the next configuration of a bounded series that always moves one way.

A knob that went down in the series never goes up again, a value that was left never comes back, and no
configuration is launched twice, so a series cannot loop. When two failures ask for opposite things, the knob
between them stays where it is and another one moves; when none is left, the hypothesis is blocked.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moeagent.agent.proposers.candidate import whole
from moeagent.agent.proposers.remedies import FlagStep, RemedyBook, Way, remedy_book
from moeagent.agent.proposers.series import Series
from moeagent.agent.proposers.suspicion import MEMORY
from moeagent.agent.proposers.vetting import odd_values, unsafe
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import ConfigChange, Diagnosis, FlagValue, Knob, Pivot, Remedy, ServerConfig


class NextPivot(NamedTuple):
    """What to launch next, and the remedy in words."""

    config: ServerConfig
    remedy: str


def next_pivot(
    config: ServerConfig, diagnosis: Diagnosis, attempts: Sequence[Pivot], view: CampaignView
) -> NextPivot | None:
    """The next attempt after `config` failed; None: blocked.

    `attempts` are the pivots of this hypothesis so far, in order; their configurations stand in the view's
    launches.
    """
    book = remedy_book()
    series = Series.of(config, attempts, view)
    if series is None or len(attempts) >= book.max_attempts or _better_apart(diagnosis, view):
        return None
    for change, why in _changes(diagnosis, series, book):
        child = config.apply(change)
        if series.allows(child):
            return NextPivot(child, f"{_in_words(config, child)}: {why}")
    return None


def _better_apart(diagnosis: Diagnosis, view: CampaignView) -> bool:
    """Whether several levers were pulled at once and one of them kills: trying them apart finds which."""
    hypothesis = view.hypothesis(view.launches[-1].hypothesis) if view.launches else None
    together = hypothesis is not None and "+" in hypothesis.move
    return together and not diagnosis.failure_class.startswith(MEMORY)


def _changes(diagnosis: Diagnosis, series: Series, book: RemedyBook) -> Iterator[tuple[ConfigChange, str]]:
    """Changes that the diagnosis asks for, then those that the data knows for its class.

    A model that made the diagnosis, or a log whose words stand in it, is believed no more than a proposal is.
    """
    objections = unsafe if diagnosis.by == "model" else odd_values
    for remedy in diagnosis.remedies:
        change = _of_remedy(remedy, series)
        coupled = _with_coupled(change, remedy, diagnosis, series, book) if change else None
        for candidate in (coupled, change):
            settled = series.question.settle(candidate) if candidate else None
            if settled and not objections(settled, series.question):
                yield settled, remedy.why or remedy.change
    engine = series.config.engine
    for step in book.fallbacks(engine, diagnosis.failure_class):
        change = _of_step(step, series)
        settled = series.question.settle(change) if change else None
        if settled:
            yield settled, f"known for {diagnosis.failure_class}"


def _of_remedy(remedy: Remedy, series: Series) -> ConfigChange | None:
    """The change of one remedy, None when it is not a change of the configuration."""
    target = remedy.target.removeprefix("env ").strip()
    if remedy.direction == "action" or " " in target or "=" in target:
        return None
    if not target.startswith("-"):
        return _variable(target, remedy)
    knob = series.question.spelling.declared(target)
    value = None if remedy.value is None else _typed(remedy.value, knob)
    match remedy.direction:
        case "raise" | "lower":
            return _moved(target, remedy.direction, series, value)
        case "remove":
            return ConfigChange(remove_flags=(target,))
        case "add" if value is not None or knob is None or knob.kind == "bool":
            return ConfigChange(set_flags={target: True if value is None else value})
        case "replace" | "add":
            word = series.alternative(target) if value is None else value
            return None if word is None else ConfigChange(set_flags={target: word})
    return None


def _variable(name: str, remedy: Remedy) -> ConfigChange | None:
    """The environment variable set as the remedy says, or as the data knows; None for other things."""
    if not name.isascii() or not name.replace("_", "").isalnum() or name != name.upper():
        return None
    if remedy.direction == "remove":
        return ConfigChange(remove_env=(name,))
    value = remedy_book().variable_value(name) if remedy.value is None else _env_text(remedy.value)
    return None if value is None else ConfigChange(set_env={name: value})


def _env_text(value: FlagValue) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _typed(value: FlagValue, knob: Knob | None) -> FlagValue:
    """A number that the log spelled as text, as a number, unless the flag takes text."""
    if not isinstance(value, str) or (knob is not None and knob.kind not in ("int", "float")):
        return value
    try:
        return whole(knob, float(value))
    except ValueError:
        return value


def _of_step(step: FlagStep, series: Series) -> ConfigChange | None:
    if step.direction in ("raise", "lower"):
        return _moved(step.flag, step.direction, series, None)
    if step.direction == "remove":
        return ConfigChange(remove_flags=(step.flag,))
    return ConfigChange(set_flags={step.flag: True})


def _moved(flag: str, way: Way, series: Series, exact: FlagValue | None) -> ConfigChange | None:
    """The flag one step further this way; the exact value where the log decided it and points this way."""
    now = series.number(series.config, flag)
    if now is None:
        return None
    if isinstance(exact, int | float) and not isinstance(exact, bool) and (exact < now) is (way == "lower"):
        return ConfigChange(set_flags={flag: whole(series.question.spelling.declared(flag), exact)})
    rule = series.rule(flag)
    if rule is None:
        return None
    steps = rule.lower if way == "lower" else rule.raise_
    bound = series.question.number(str(steps.bound))
    if bound is None:
        return None
    moved = round(steps.apply(now, series.moves(flag, way), way, bound), 3)
    if moved == now or (moved < now) is not (way == "lower"):
        return None
    return ConfigChange(set_flags={flag: whole(series.question.spelling.declared(flag), moved)})


def _with_coupled(
    change: ConfigChange, remedy: Remedy, diagnosis: Diagnosis, series: Series, book: RemedyBook
) -> ConfigChange | None:
    """The change with the knob that must follow, None when nothing must."""
    spelling, engine = series.question.spelling, series.config.engine
    for rule in book.together:
        applies = rule.engine == engine and diagnosis.failure_class in rule.classes
        if applies and rule.direction == remedy.direction and rule.flag in spelling.all(remedy.target):
            also = _of_step(rule.also, series)
            if also is not None:
                return change.model_copy(update={"set_flags": {**change.set_flags, **also.set_flags}})
    return None


def _in_words(before: ServerConfig, after: ServerConfig) -> str:
    change = before.diff(after)
    parts = [f"{k} {_shown(before.flags.get(k))} -> {_shown(v)}" for k, v in change.set_flags.items()]
    parts += [f"{k}={v}" for k, v in change.set_env.items()]
    parts += [f"without {k}" for k in (*change.remove_flags, *change.remove_env)]
    return ", ".join(parts)


def _shown(value: FlagValue | None) -> str:
    return "unset" if value is None else str(value)
