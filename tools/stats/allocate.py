"""Which launch teaches most: ideas that one launch cannot settle are parked and taken up again later.

First every idea gets one launch. Then the idea with the highest upper bound is launched again, and the
incumbent whenever it has fewer launches than that idea: of ten ideas of which one is good this finds the good
one with far fewer launches than equal shares need (measured in tests/bench/placebo).
"""

import math
from collections.abc import Sequence
from typing import Literal

from moeagent.memory.records import Record
from moeagent.tools.stats.assess import Assessment

OPTIMISM = 2.25
"""Standard errors of a candidate's own mean that its upper bound adds."""


class OpenIdea(Record):
    """An idea without a verdict, with its last assessment."""

    idea: str
    assessment: Assessment


class Step(Record):
    """What the loop does next."""

    kind: Literal["propose", "launch-idea", "launch-incumbent", "finish"]
    """finish: settle what is open as inconclusive, then confirm the champion."""
    idea: str | None = None
    """The idea to launch, or the one for whose sake the incumbent is launched."""
    reason: str


def next_step(
    open_ideas: Sequence[OpenIdea],
    *,
    fresh: str | None,
    more_ideas: bool,
    noise_sd: float,
    launches_left: int,
    reserve: int,
) -> Step:
    """The next launch, or the next idea.

    fresh: the idea at work, if it has no verdict: it goes on at once while it is promising. more_ideas: the
    proposer may have another one and its limit is not reached. noise_sd: launch noise of the goal's score.
    reserve: launches kept for the confirmation of the champion.
    """
    spendable = launches_left - reserve
    if spendable <= 0:
        return Step(kind="finish", reason=f"{launches_left} launches are left, {reserve} of them reserved")
    asking = [o for o in open_ideas if o.assessment.need is not None]
    promising = [o for o in asking if o.idea == fresh and o.assessment.pursue]
    if promising:
        return _launch(promising[0], "is promising enough to be followed up at once")
    if more_ideas:
        return Step(kind="propose", reason=f"{len(asking)} ideas are parked until all had their first launch")
    if not asking:
        return Step(kind="finish", reason="every idea is settled")
    leader = max(asking, key=lambda o: upper_bound(o.assessment, noise_sd))
    bound = upper_bound(leader.assessment, noise_sd)
    hope = f"may still bring {math.expm1(bound):+.1%}" if bound < math.inf else "has no measurement yet"
    return _launch(leader, f"{hope}: the most of {len(asking)} open ideas")


def _launch(idea: OpenIdea, why: str) -> Step:
    kind: Literal["launch-idea", "launch-incumbent"]
    kind = "launch-incumbent" if idea.assessment.need == "incumbent" else "launch-idea"
    return Step(kind=kind, idea=idea.idea, reason=f"{idea.idea} {why}")


def upper_bound(assessment: Assessment, noise_sd: float) -> float:
    """Optimistic log gain: the estimate plus its own launches' uncertainty; infinite before the first."""
    if assessment.log_ratio is None:
        return math.inf
    return assessment.log_ratio + OPTIMISM * noise_sd / math.sqrt(assessment.launches[1])
