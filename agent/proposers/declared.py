"""Exploration of a small declared space: knobs that the book does not know."""

from collections.abc import Iterator

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.question import Question
from moeagent.memory.records import ConfigChange, FlagValue, Knob

DECLARED_SPACE = 40
"""An engine that declares at most this many knobs has declared its search space."""


def declared_knobs(question: Question) -> Iterator[Candidate]:
    """Knobs of a small declared space that the book does not know."""
    spelled = {s for flag in question.book.flags() for s in question.spelling.all(flag)}
    if len(question.view.engine.knobs) > DECLARED_SPACE:
        return
    for knob in question.view.engine.knobs:
        if knob.name in spelled or knob.status != "current":
            continue
        for value in _values_to_try(knob, question):
            raw = (
                ConfigChange(set_flags={knob.name: value})
                if value is not False
                else ConfigChange(remove_flags=(knob.name,))
            )
            change = question.settle(raw)
            if change is not None:
                yield Candidate(
                    move=f"declared:{knob.name}={value}",
                    statement=f"Try {knob.name} = {value}",
                    why=knob.help or "The engine declares this knob; nothing is known about it here.",
                    source="the engine's own list of flags",
                    category=f"explore {knob.name}",
                    change=change,
                    gains={c: Gain(0.0, 0.04) for c in question.view.workload.ladder},
                    risk=0.1,
                )


def _change(name: str, value: FlagValue) -> ConfigChange:
    return ConfigChange(remove_flags=(name,)) if value is False else ConfigChange(set_flags={name: value})


def _values_to_try(knob: Knob, question: Question) -> tuple[FlagValue, ...]:
    if knob.kind == "bool":
        return (False,) if question.spelling.find(knob.name, question.view.incumbent.flags) else (True,)
    if knob.choices:
        return knob.choices
    now = question.number_in_force(knob.name)
    if now is None or knob.kind not in ("int", "float"):
        return ()
    return (
        (round(now * 2), max(1, round(now / 2)))
        if knob.kind == "int"
        else (round(now * 1.1, 4), round(now / 1.1, 4))
    )
