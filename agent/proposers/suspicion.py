"""Which levers are suspected of having killed a server: deaths that no memory explains, by elimination.

Every lever that a dead configuration has and no survivor had is a suspect. A death makes each suspect more
likely to kill, by Bayes' rule from what the book says of its risk; a survivor clears all levers that it had.
"""

import math
from collections.abc import Iterable

from moeagent.agent.proposers.history import value
from moeagent.agent.proposers.question import Question
from moeagent.memory.records import ConfigChange, FlagValue, Launch, LaunchOutcome, ServerConfig

DEATHS = (LaunchOutcome.DIED_STARTING, LaunchOutcome.HUNG_STARTING, LaunchOutcome.DIED_SERVING)
MEMORY = "oom."
"""Classes of failure that the memory table accounts for: amounts add up, and no single lever kills."""
PRIOR = 0.05
"""Chance that a lever kills which was never launched and of which the book does not speak: a rank, no
measurement stands behind it."""

Lever = tuple[str, FlagValue | None]


class Suspicion:
    """Chances that levers kill, from the launches of one campaign."""

    def __init__(self, question: Question) -> None:
        view = question.view
        self._prior = _risks(question)
        cleared = {
            lever
            for launch in view.launches
            if launch.outcome is LaunchOutcome.COMPLETED
            for lever in _levers(view.baseline, launch.config)
        }
        self._chance: dict[Lever, float] = {}
        for launch in view.launches:
            suspects = set(_levers(view.baseline, launch.config)) - cleared if _tells(launch) else set()
            self._learn(sorted(suspects, key=str))

    def _learn(self, suspects: list[Lever]) -> None:
        chances = [self._chance.get(s, self._prior.get(s[0], PRIOR)) for s in suspects]
        any_kills = 1 - math.prod(1 - chance for chance in chances)
        for suspect, chance in zip(suspects, chances, strict=True):
            self._chance[suspect] = min(chance / any_kills, 1.0)

    def risk(self, base: ServerConfig, change: ConfigChange) -> float:
        """Chance that one of the change's levers kills, as far as they are suspected."""
        child = base.apply(change)
        found = (self._chance.get((knob, value(child, knob)), 0.0) for knob in change.knobs())
        return 1 - math.prod(1 - chance for chance in found)


def _risks(question: Question) -> dict[str, float]:
    """The highest risk of the moves that pull a knob, by knob under any of its spellings."""
    risks: dict[str, float] = {}
    for move in question.book.move:
        for name in (*move.set_flags, *move.set_env):
            for knob in question.spelling.all(name):
                risks[knob] = max(risks.get(knob, 0.0), move.risk)
    return risks


def _levers(baseline: ServerConfig, config: ServerConfig) -> Iterable[Lever]:
    return ((knob, value(config, knob)) for knob in baseline.diff(config).knobs())


def _tells(launch: Launch) -> bool:
    """Whether the death points at a lever."""
    failure = launch.diagnosis.failure_class if launch.diagnosis else ""
    return launch.outcome in DEATHS and not failure.startswith(MEMORY)
