"""Puts a ranked candidate into the words and numbers of a hypothesis."""

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.limits import Limit
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.ranking import Ranked
from moeagent.agent.proposers.situation import goal_rung
from moeagent.agent.proposers.view import CampaignView

CANARY_RISK = 0.15
"""From this chance of a crash on, the ladder climbs through smaller concurrencies first."""
CANARY_RUNGS = (32, 64, 128, 512)
MAX_JUMP = 2.0
"""A jump in concurrency up to this factor needs no canary."""


def draft(ranked: Ranked, view: CampaignView, limits: tuple[Limit, ...]) -> Draft:
    """The hypothesis of the candidate, with a number at each rung and what would refute it."""
    candidate, rung = ranked.candidate, goal_rung(view)
    return Draft(
        statement=candidate.statement,
        reason=f"{_binding(limits, candidate)}{candidate.why}",
        change=candidate.change,
        parent=view.incumbent.id,
        predicted=tuple(candidate.gains[c].at(c) for c in sorted(candidate.gains)),
        refuted_by=_refutation(ranked.gain, rung, view),
        category=candidate.category,
        risk=round(min(candidate.risk, 1.0), 3),
        risk_why=candidate.risk_why or f"prior of the move: {candidate.source}",
        source="playbook",
        prior=candidate.prior or candidate.source,
        from_run=candidate.from_run,
        move=candidate.move,
        canary=canary(view.workload.ladder) if candidate.risk >= CANARY_RISK else (),
    )


def canary(ladder: tuple[int, ...]) -> tuple[int, ...]:
    """Rungs to put between those of the ladder, so that a server that dies leaves its boundary behind."""
    rungs = sorted(ladder)
    extra: list[int] = []
    for rung in CANARY_RUNGS:
        below = max((r for r in (*rungs, *extra) if r <= rung), default=None)
        above = min((r for r in rungs if r >= rung), default=None)
        if below and above and below < rung < above and above / below > MAX_JUMP:
            extra.append(rung)
    return tuple(extra)


def _binding(limits: tuple[Limit, ...], candidate: Candidate) -> str:
    """The limit that the candidate moves, or else the strongest."""
    moved = next((x for x in limits if x.name in candidate.limits), None)
    if moved is not None:
        return f"{moved.name} binds ({moved.evidence}). "
    return f"{limits[0].name} binds most ({limits[0].evidence}). " if limits else ""


def _refutation(gain: Gain, rung: int, view: CampaignView) -> str:
    if gain.mean >= view.goal.min_effect:
        return f"an effect whose interval lies below {view.goal.min_effect:+.0%} at concurrency {rung}"
    return f"an effect that is not proven to be above zero at concurrency {rung}"
