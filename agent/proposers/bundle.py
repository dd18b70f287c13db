"""Several good ideas in one launch: launches are what a campaign is short of.

Only ideas that probably pay and hardly ever crash go together, while each still applies after the others.
When a bundle fails, its parts are tried apart: two parts of a failed bundle never share a bundle again.
What promises nothing either way is screened: many small ideas in one launch, once nothing better is left.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.history import Past
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.ranking import CRASH_COST, Ranked
from moeagent.memory.records import ConfigChange

MAX_PARTS = 6
LIKELY = 0.75
"""A part must bring a gain with at least this chance."""
LIKELY_IN_HASTE = 0.55
"""The same where fewer launches are left than ideas: apart, most of them would never be tried."""
SAFE = 0.12
"""A part may crash with at most this chance."""
SMALL_MEAN = 0.01
"""An idea of which more is believed than this, for good or ill, is none of unknown sign."""
SMALL_SD = 0.035
"""An idea that may do more than about this deserves a launch of its own."""
SHARE = 0.1
"""A part must promise at least this share of the smallest effect that counts."""
OVERLAP = 0.8
"""What is left of the smaller gains: two levers of one limit bring less together than apart."""
TIE = 1.001
"""A bundle that is worth as much as its best part goes first: it saves the launches of the others."""
CERTAIN = 0.9
"""A part must be as sure as this to apply: no doubtful precondition, no earlier failure."""
APART = ("combine", "undo", "known", "declared")
"""Sources whose candidates stand alone: they are combinations already, or mere guesses."""


class _Parts(NamedTuple):
    """What goes together so far."""

    ranked: tuple[Ranked, ...]
    change: ConfigChange

    @property
    def risk(self) -> float:
        """Chance that any part crashes."""
        return 1 - math.prod(1 - part.candidate.risk for part in self.ranked)

    def worth(self) -> float:
        """Expected relative improvement of the launch: a risky part can cost more than it adds."""
        each = sorted((p.gain.expected_improvement() * p.candidate.doubt for p in self.ranked), reverse=True)
        return self._per_launch(each[0] + OVERLAP * sum(each[1:]))

    def surprise(self) -> float:
        """The same where nothing is promised: what the sum of many unknowns may bring."""
        gains = [part.gain for part in self.ranked]
        together = Gain(sum(g.mean for g in gains), math.hypot(*(g.sd for g in gains)))
        return self._per_launch(together.expected_improvement())

    def _per_launch(self, promised: float) -> float:
        cost = max(part.candidate.cost for part in self.ranked) * (1 + CRASH_COST * self.risk)
        return promised * (1 - self.risk) / cost


def bundle(ranked: Sequence[Ranked], question: Question) -> Ranked | None:
    """The best ideas that can share a launch, or None when fewer than two can."""
    worth = SHARE * question.view.goal.min_effect
    likely = _likely(ranked, worth, question)
    able = [r for r in ranked if r.score >= worth and _can_share(r, likely)]
    parts = _grown(able, _Parts.worth, question)
    return None if parts is None else _ranked(parts, question)


def screen(ranked: Sequence[Ranked], question: Question) -> Ranked | None:
    """Small, safe ideas of unknown sign in one launch, or None when fewer than two can share it.

    Apart they are worth no launch each; together one of them, or a pair that pays only as a pair, may show.
    """
    able = sorted(filter(_is_small, ranked), key=lambda r: (-r.score, r.candidate.move))
    parts = _grown(able, _Parts.surprise, question)
    if parts is None:
        return None
    found = _ranked(parts, question)
    return None if found is None else found._replace(score=round(parts.surprise(), 6))


def _is_small(ranked: Ranked) -> bool:
    candidate, gain = ranked.candidate, ranked.gain
    small = abs(gain.mean) <= SMALL_MEAN and gain.sd <= SMALL_SD and candidate.risk <= SAFE / 2
    return small and _is_whole(candidate)


def _grown(able: Sequence[Ranked], worth: Callable[[_Parts], float], question: Question) -> _Parts | None:
    """The first with every other that makes it worth more; None when it stays alone."""
    if not able:
        return None
    parts = _Parts((able[0],), able[0].candidate.change)
    for other in able[1:]:
        joined = _joined(parts, other, question) if len(parts.ranked) < MAX_PARTS else None
        if joined is not None and worth(joined) > worth(parts):
            parts = joined
    return parts if len(parts.ranked) > 1 else None


def _likely(ranked: Sequence[Ranked], worth: float, question: Question) -> float:
    left = question.view.budget.launches
    ideas = sum(r.score >= worth for r in ranked)
    return LIKELY if left is None or left >= ideas else LIKELY_IN_HASTE


def _can_share(ranked: Ranked, likely: float) -> bool:
    candidate = ranked.candidate
    return _is_whole(candidate) and ranked.gain.chance() >= likely and candidate.risk <= SAFE


def _is_whole(candidate: Candidate) -> bool:
    """Whether it may share a launch at all: no combination already, and no doubt whether it applies."""
    return candidate.move.split(":")[0] not in APART and candidate.doubt >= CERTAIN


def _joined(parts: _Parts, other: Ranked, question: Question) -> _Parts | None:
    change = other.candidate.change
    if set(change.knobs()) & set(parts.change.knobs()):
        return None
    if any(_failed_together(question.past, part.candidate, other.candidate) for part in parts.ranked):
        return None
    if not _still_applies(other.candidate, parts.change, question):
        return None
    base = question.base
    joined = base.diff(base.apply(parts.change).apply(change))
    return _Parts((*parts.ranked, other), joined)


def _failed_together(past: Past, one: Candidate, other: Candidate) -> bool:
    with_one = {trial.hypothesis.id for trial in past.of_move(one.move)}
    return any(t.hypothesis.id in with_one and not t.improved for t in past.of_move(other.move))


def _still_applies(candidate: Candidate, before: ConfigChange, question: Question) -> bool:
    """Whether the move's precondition holds once the other changes are made."""
    move = next((m for m in question.book.move if m.id == candidate.move), None)
    if move is None:
        return True
    after = Question(
        question.view, question.book, question.limits, question.spelling, base=question.base.apply(before)
    )
    return after.holds(move.when) > 0


def _ranked(parts: _Parts, question: Question) -> Ranked | None:
    members = [part.candidate for part in parts.ranked]
    gains = {c: _sum([m.gains[c] for m in members]) for c in question.view.workload.ladder}
    doubt = math.prod(m.doubt for m in members)
    gain = _sum([part.gain for part in parts.ranked])
    candidate = Candidate(
        move="+".join(m.move for m in members),
        statement="Together: " + "; ".join(m.statement for m in members),
        why=" ".join(m.why for m in members),
        source=" | ".join(m.source for m in members),
        category=members[0].category,
        change=parts.change,
        gains=gains,
        limits=members[0].limits,
        cost=max(m.cost for m in members),
        risk=parts.risk,
        risk_why=next((m.risk_why for m in members if m.risk_why), ""),
        doubt=doubt * question.past.doubt(parts.change, question.base.apply(parts.change), "+"),
    )
    best = max(part.score for part in parts.ranked)
    score = round(max(parts.worth(), best * TIE), 6)
    return Ranked(candidate, gain, score) if candidate.doubt > 0 else None


def _sum(gains: Sequence[Gain]) -> Gain:
    """The gain of changes made together."""
    largest = max(g.mean for g in gains)
    rest = sum(g.mean for g in gains) - largest
    return Gain(largest + OVERLAP * rest, math.hypot(*(g.sd for g in gains)))
