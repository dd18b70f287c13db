"""How far from zero an estimate must be before a gain may be claimed, at any look, for any number of ideas.

Each idea gets an equal share of the campaign's error. Two boundaries that both hold under continuous looking
split that share (union bound), and the nearer one decides:

- the square-root-free boundary of Brownian motion up to a planned horizon (the continuous O'Brien-Fleming
  boundary: by the reflection principle P(max B >= b) = 2 P(B(T) >= b)); it costs almost nothing at the horizon;
- Robbins' normal mixture, for large effects after few launches (H. Robbins, Ann. Math. Stat. 41, 1970).
"""

import math

from moeagent.memory.records import Record

EARLY_SHARE = 0.2
"""Part of an idea's error that goes to the mixture; the rest goes to the horizon boundary."""
MIXTURE_INFORMATION = 0.5
"""Information (in launches) at which the mixture is tightest is a few times this: three launches a side."""


class Plan(Record):
    """What the campaign may spend, stated before it starts: corrections follow from it, not from its course."""

    ideas: int
    """Ideas that may be tried: the claim's error is shared among so many."""
    launches: int
    """Launches of the whole campaign."""
    alpha: float = 0.01
    """Largest chance that a campaign without a true gain claims one."""

    @property
    def horizon(self) -> float:
        """Information on one idea, in launches, at which its test ends.

        Two series of n launches each hold n/2. The leading idea and the incumbent get about half of the
        campaign between them.
        """
        return max(2.0, self.launches / 8)


def critical(information: float, plan: Plan) -> float:
    """Standard deviations above zero that a claim needs now, for known noise.

    information: the launch variance over the variance of the estimate.
    """
    from scipy.special import ndtri

    share = plan.alpha / plan.ideas
    fraction = min(1.0, information / plan.horizon)
    late = -float(ndtri((1 - EARLY_SHARE) * share / 2)) / math.sqrt(fraction)
    return min(late, _mixture(information, EARLY_SHARE * share))


def _mixture(information: float, alpha: float) -> float:
    ratio = information / MIXTURE_INFORMATION
    return math.sqrt((1 + 1 / ratio) * (2 * math.log(1 / (2 * alpha)) + math.log1p(ratio)))


def with_unknown_noise(z: float, df: float) -> float:
    """The Student quantile with the tail of this normal quantile: noise is an estimate with df degrees."""
    from scipy.special import ndtr, stdtrit

    return -float(stdtrit(df, ndtr(-z)))


def student(level: float, df: float) -> float:
    """The one-sided Student quantile: student(0.975, df) spans a two-sided 95 % interval."""
    from scipy.special import stdtrit

    return float(stdtrit(df, level))
