"""Ranks candidates by what a launch is expected to bring against what it costs."""

from collections.abc import Iterable
from typing import NamedTuple

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.situation import goal_rung

CRASH_COST = 1.5
"""Launches that a crash costs beside its own: its pivots."""
RECKLESS = 0.5
"""A risk from which a server sooner dies than serves."""
LAST_RESORT = 0.25
"""Factor for an idea as risky as that: nearly every safer one comes before it."""
CATEGORY_PATIENCE = 0.75
"""Factor for each idea of the category that did not pay since one last did."""
FOLLOW_UP = 1.5
"""Factor for a move that the book names as the next one after what happened."""


class Ranked(NamedTuple):
    """A candidate with its worth."""

    candidate: Candidate
    gain: Gain
    """At the rung that the goal looks at."""
    score: float
    """Expected relative improvement per launch."""


def rank(candidates: Iterable[Candidate], question: Question) -> tuple[Ranked, ...]:
    """The best first; of candidates that lead to one configuration the best only."""
    rung, named = goal_rung(question.view), _follow_ups(question)
    best: dict[str, Ranked] = {}
    for candidate in candidates:
        ranked = _worth(candidate, rung, named, question)
        key = question.spelling.effective_key(question.view.incumbent.apply(candidate.change))
        if key not in best or ranked.score > best[key].score:
            best[key] = ranked
    return tuple(sorted(best.values(), key=order))


def order(ranked: Ranked) -> tuple[float, str]:
    """Sort key: the highest score first, equal scores by name."""
    return -ranked.score, ranked.candidate.move


def _worth(candidate: Candidate, rung: int, named: frozenset[str], question: Question) -> Ranked:
    gain = candidate.gains[rung]
    chance = candidate.doubt * (1 - candidate.risk)
    chance *= CATEGORY_PATIENCE ** question.past.failures_in(candidate.category)
    chance *= LAST_RESORT if candidate.risk >= RECKLESS else 1.0
    chance *= FOLLOW_UP if candidate.move in named else 1.0
    cost = candidate.cost * (1 + CRASH_COST * candidate.risk)
    return Ranked(candidate, gain, round(chance * gain.expected_improvement() / cost, 6))


def _follow_ups(question: Question) -> frozenset[str]:
    """Moves that the book names after the outcomes so far."""
    named: set[str] = set()
    for move in question.book.move:
        for trial in question.past.of_move(move.id):
            named.update(move.on_success if trial.improved else move.on_failure)
    return frozenset(named)
