"""What a change is expected to bring: priors, the predictor and this run's measurements in one number.

A gain is a normal distribution of the relative effect. A prior's (low, high) is read as its 80 % interval.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist, median
from typing import NamedTuple, Self

from moeagent.agent.proposers.book import EffectPoint
from moeagent.memory.records import PredictedEffect, Verdict

_Z80 = 1.2816
_UNIT = NormalDist()
_MIN_SD = 0.004
_MEDIAN_SD = 0.6745
"""Median distance from the mean of a normal distribution, in standard deviations."""
# A model of the decode step misses a machine that it has not seen by 10 to 20 % (33 published rows).
PREDICTOR_SD = 0.12
PREDICTOR_WEIGHT = 3
"""How many of this run's own residuals the stated error is worth."""
NO_OPINION = 0.002
"""A predictor that sees less than this at every rung does not model the change."""


class Gain(NamedTuple):
    """Relative effect on output tok/s: mean and standard deviation."""

    mean: float
    sd: float

    @classmethod
    def between(cls, low: float, high: float) -> Self:
        """The gain whose 80 % interval is (low, high)."""
        return cls((low + high) / 2, max((high - low) / (2 * _Z80), _MIN_SD))

    @property
    def low(self) -> float:
        """Lower end of the 80 % interval; a server cannot lose more than everything."""
        return max(self.mean - _Z80 * self.sd, -1.0)

    @property
    def high(self) -> float:
        """Upper end of the 80 % interval."""
        return self.mean + _Z80 * self.sd

    def expected_improvement(self) -> float:
        """Mean of the part above zero: what a launch brings when a loss is not adopted."""
        z = self.mean / self.sd
        return self.sd * _UNIT.pdf(z) + self.mean * _UNIT.cdf(z)

    def chance(self) -> float:
        """Probability of any gain."""
        return _UNIT.cdf(self.mean / self.sd)

    def times(self, relevance: float) -> "Gain":
        """The gain when its limit binds only in part: what it brings shrinks, what it costs stays."""
        ends = (self.mean - _Z80 * self.sd, self.mean + _Z80 * self.sd)
        low, high = (end if end < 0 else end * relevance for end in ends)
        return Gain.between(low, high)

    def combine(self, other: "Gain") -> "Gain":
        """Both sources, weighted by their precision."""
        own, theirs = self.sd**-2, other.sd**-2
        return Gain((self.mean * own + other.mean * theirs) / (own + theirs), (own + theirs) ** -0.5)

    def at(self, concurrency: int) -> PredictedEffect:
        """The gain as a record, rounded so that it is the same on every machine."""
        return PredictedEffect(
            concurrency=concurrency,
            effect=round(self.mean, 4),
            low=round(self.low, 4),
            high=round(self.high, 4),
        )


def interpolate(points: Sequence[EffectPoint], concurrency: int) -> Gain:
    """The prior at a concurrency: linear in its logarithm between the points, flat beyond them."""
    ordered = sorted(points, key=lambda p: p.at)
    if concurrency <= ordered[0].at:
        return Gain.between(ordered[0].low, ordered[0].high)
    for left, right in pairwise(ordered):
        if concurrency <= right.at:
            share = math.log(concurrency / left.at) / math.log(right.at / left.at)
            low = left.low + share * (right.low - left.low)
            return Gain.between(low, left.high + share * (right.high - left.high))
    return Gain.between(ordered[-1].low, ordered[-1].high)


def predictor_sd(verdicts: Sequence[Verdict]) -> float:
    """The predictor's error by these verdicts: its stated error, updated by every scored prediction.

    By the median: a setting that stood in the way of everything multiplies the speed when it goes, and that
    says nothing of what the predictor models.
    """
    stated = [_MEDIAN_SD * PREDICTOR_SD] * PREDICTOR_WEIGHT
    residuals = [abs(p.measured - p.predicted) for v in verdicts for p in v.predictions]
    return median([*stated, *residuals]) / _MEDIAN_SD


def blend(
    prior: Mapping[int, Gain], predicted: Sequence[PredictedEffect], error_sd: float, *, guessed: bool = False
) -> dict[int, Gain]:
    """The prior at each rung, joined with what the predictor says there, if it has an opinion.

    A guessed prior is at least as unsure as half of the effect that the predictor sees.
    """
    if all(abs(p.effect) < NO_OPINION for p in predicted):
        return dict(prior)
    said = {p.concurrency: Gain(p.effect, max(Gain.between(p.low, p.high).sd, error_sd)) for p in predicted}
    if guessed:
        prior = {c: _doubted(gain, said[c]) if c in said else gain for c, gain in prior.items()}
    return {c: gain.combine(said[c]) if c in said else gain for c, gain in prior.items()}


def _doubted(guess: Gain, said: Gain) -> Gain:
    return guess._replace(sd=max(guess.sd, abs(said.mean) / 2))


def excess_risk(risk: float, known: float) -> float:
    """A child's predicted risk beyond that of its parent, which runs whatever is feared of it."""
    return max(0.0, (risk - known) / (1 - known)) if known < 1 else 0.0
