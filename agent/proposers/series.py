"""A series of pivots, and the rules that keep it from looping."""

from collections.abc import Iterator, Sequence

from moeagent.agent.proposers.book import load_book
from moeagent.agent.proposers.expression import UnknownFactError
from moeagent.agent.proposers.facts import functions_of
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.remedies import KnobSteps, Way, remedy_book
from moeagent.agent.proposers.spelling import Spelling
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import ConfigChange, FlagValue, Pivot, ServerConfig


class Series:
    """The attempts so far, and the rules that keep them from looping."""

    def __init__(self, question: Question, steps: list[tuple[ServerConfig, ServerConfig]]) -> None:
        self.question, self.steps = question, steps
        self.config = question.base
        known = [x.config for x in question.view.launches] + [c for pair in steps for c in pair]
        self._seen = {question.spelling.effective_key(c) for c in (*known, self.config)}
        self._aim = _hypothesis_change(self.config, steps, question.view)

    @classmethod
    def of(cls, config: ServerConfig, attempts: Sequence[Pivot], view: CampaignView) -> "Series | None":
        """None when a configuration of the series is not known: nothing could be promised then."""
        pairs = [
            (
                view.config(p.config_before),
                config if p.config_after == config.id else view.config(p.config_after),
            )
            for p in attempts
        ]
        known = [(before, after) for before, after in pairs if before is not None and after is not None]
        if len(known) != len(pairs):
            return None
        engine_book = load_book(config.engine)
        spelling = Spelling(view.engine, engine_book.aliases, engine_book.renamed)
        return cls(Question(view, engine_book, (), spelling, base=config), known)

    def moves(self, flag: str, way: Way) -> int:
        """How often the flag's number went this way in the series."""
        return sum(1 for before, after in self._values(flag) if (after < before) is (way == "lower"))

    def _values(self, flag: str) -> Iterator[tuple[float, float]]:
        for before, after in self.steps:
            values = [self.number(c, flag) for c in (before, after)]
            if values[0] is not None and values[1] is not None and values[0] != values[1]:
                yield values[0], values[1]

    def number(self, config: ServerConfig, flag: str) -> float | None:
        """The flag's number in force under the configuration, None when it has none or nobody knows it."""
        value = self._in_force(config, flag)
        return None if isinstance(value, bool | str) else float(value)

    def _in_force(self, config: ServerConfig, flag: str) -> FlagValue:
        in_force = functions_of(self.question.view, config, self.question.spelling)["flag"]
        try:
            return in_force(flag)
        except UnknownFactError:
            return self._assumed(flag)

    def _assumed(self, flag: str) -> FlagValue:
        """The data's word on what is in force; a text when it has none."""
        rule = self.rule(flag)
        try:
            return "" if rule is None or rule.default is None else self.question.value(rule.default)
        except UnknownFactError:
            return ""

    def rule(self, flag: str) -> KnobSteps | None:
        """The step sizes of the flag under any of its spellings."""
        spellings = self.question.spelling.all(flag)
        knobs = remedy_book().knob
        return next((k for k in knobs if k.engine == self.config.engine and k.flag in spellings), None)

    def alternative(self, flag: str) -> str | None:
        """The next word for the flag that the series did not have and the engine accepts."""
        spelling = self.question.spelling
        spellings, knob = spelling.all(flag), spelling.declared(flag)
        had = {c.flags.get(s) for c in (self.config, *(c for p in self.steps for c in p)) for s in spellings}
        had.add(self._in_force(self.config, flag))
        for entry in remedy_book().alternative:
            if entry.engine == self.config.engine and entry.flag in spellings:
                accepted = (v for v in entry.values if not knob or not knob.choices or v in knob.choices)
                return next((v for v in accepted if v not in had), None)
        return None

    def allows(self, child: ServerConfig) -> bool:
        """New, one-way, and still a test of what the hypothesis said."""
        if self.question.spelling.effective_key(child) in self._seen:
            return False
        change = self.config.diff(child)
        return all(self._one_way(k, child) for k in change.knobs()) and self._keeps_aim(child)

    def _one_way(self, knob: str, child: ServerConfig) -> bool:
        now, new = self.number(self.config, knob), self.number(child, knob)
        if now is not None and new is not None and now != new:
            return self.moves(knob, "raise" if new < now else "lower") == 0
        past = [c.flags.get(knob, c.env.get(knob)) for pair in self.steps for c in pair]
        return child.flags.get(knob, child.env.get(knob)) not in past

    def _keeps_aim(self, child: ServerConfig) -> bool:
        """A value that the hypothesis set may come closer to the parent's, but not back to it."""
        if self._aim is None:
            return True
        parent, change = self._aim
        for knob in change.knobs():
            if child.flags.get(knob) == parent.flags.get(knob) and child.env.get(knob) == parent.env.get(
                knob
            ):
                return False
        return True


def _hypothesis_change(
    config: ServerConfig, steps: list[tuple[ServerConfig, ServerConfig]], view: CampaignView
) -> tuple[ServerConfig, ConfigChange] | None:
    """The parent and the change of the hypothesis that the series belongs to."""
    first = steps[0][0] if steps else config
    for launch in view.launches_of(first):
        hypothesis = next((h for h in view.hypotheses if h.id == launch.hypothesis), None)
        parent = view.config(hypothesis.parent) if hypothesis else None
        if hypothesis is not None and parent is not None:
            return parent, hypothesis.change
    return None
