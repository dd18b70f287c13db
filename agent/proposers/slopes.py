"""Numeric knobs as one axis each: where a launch had a larger value, it speaks of all larger values."""

import math
from collections.abc import Sequence
from typing import TypeGuard

from moeagent.agent.proposers.expression import UnknownFactError, Value
from moeagent.agent.proposers.facts import as_number, functions_of
from moeagent.agent.proposers.question import Question
from moeagent.memory.records import ServerConfig


class Slopes:
    """How far the numbers that the book walks by factors lie from the baseline's."""

    def __init__(self, question: Question, measured: Sequence[ServerConfig]) -> None:
        self._spelling = question.spelling
        walked = [step.flag for step in question.book.step if step.scale == "times"]
        self._first = {flag: _in_force(question, flag) for flag in walked}
        self.flags = tuple(f for f in walked if len({self._doubled(f, config) for config in measured}) > 1)
        """Those that were measured at several values."""

    def doublings(self, config: ServerConfig) -> list[float]:
        """For each flag how often the baseline's number is doubled; negative where it is halved."""
        return [self._doubled(flag, config) for flag in self.flags]

    def _doubled(self, flag: str, config: ServerConfig) -> float:
        name = self._spelling.find(flag, config.flags)
        first, now = self._first[flag], as_number(config.flags[name]) if name else None
        return math.log2(now / first) if _positive(now) and _positive(first) else 0.0


def _in_force(question: Question, flag: str) -> Value | None:
    view = question.view
    try:
        return functions_of(view, view.baseline, question.spelling)["flag"](flag)
    except UnknownFactError:
        return None


def _positive(value: Value | None) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
