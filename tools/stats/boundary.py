"""How far from zero an estimate must be before a gain may be claimed, at any look, for any number of ideas.

Each idea gets an equal share of the campaign's error. Two boundaries split that share (union bound), and the
nearer one decides:

- late: Brownian motion up to a planned horizon (the continuous O'Brien-Fleming boundary: by the reflection
  principle P(max B >= b) = 2 P(B(T) >= b)); it holds at every look and costs almost nothing at the horizon;
- early: for large gains after few launches, a Bonferroni level per look that halves with each launch.
"""

import math

from moeagent.memory.records import Record

EARLY_SHARE = 0.3
"""Part of an idea's error that goes to the early looks; the rest goes to the late boundary."""


CONFIRMS_FROM = 20
"""Launches of a campaign from which three a side are kept for the confirmation."""


class Plan(Record):
    """What the campaign may spend, stated before it starts, so that corrections do not hang on its course."""

    ideas: int
    """Ideas that may be tried: the claim's error is shared among so many."""
    launches: int
    """Launches of the whole campaign."""
    alpha: float = 0.01
    """Largest chance that a campaign without a true gain claims one."""

    @property
    def reserve(self) -> int:
        """Launches kept back for the confirmation of the champion: an even number, 0 in a small campaign.

        From 20 launches on at least the three a side without which nothing is confirmed.
        """
        pairs = self.launches // 12
        return 2 * min(6, max(3, pairs) if self.launches >= CONFIRMS_FROM else pairs)

    @property
    def horizon(self) -> float:
        """Information on one idea, in launches, at which its test ends.

        Two series of n launches each hold n/2, and the leading idea and the incumbent get about two thirds of
        the campaign between them (the value with the highest power in tests/bench/placebo).
        """
        return max(2.0, self.launches / 6)


def critical(information: float, launches: int, plan: Plan, *, first_look: int) -> float:
    """Standard deviations above zero that a claim needs now, for known noise.

    information: the launch variance over the variance of the estimate. launches: of the side that has fewer.
    first_look: launches a side from which claims are made at all.
    """
    from scipy.special import ndtri

    share = plan.alpha / plan.ideas
    fraction = min(1.0, information / plan.horizon)
    late = -float(ndtri((1 - EARLY_SHARE) * share / 2)) / math.sqrt(fraction)
    look = max(1, launches - first_look + 1)
    early = -float(ndtri(EARLY_SHARE * share * 0.5**look))
    return min(late, early)


def with_unknown_noise(z: float, df: float) -> float:
    """The Student quantile with the tail of this normal quantile: noise is an estimate with df degrees."""
    from scipy.special import ndtr, stdtrit

    return -float(stdtrit(df, ndtr(-z)))


def student(level: float, df: float) -> float:
    """The one-sided Student quantile: student(0.975, df) spans a two-sided 95 % interval."""
    from scipy.special import stdtrit

    return float(stdtrit(df, level))
