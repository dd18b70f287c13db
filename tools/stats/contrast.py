"""The ratio of two configurations, estimated from their launches under drift."""

import math

from moeagent.memory.records import Effect, Record
from moeagent.tools.stats.boundary import student
from moeagent.tools.stats.noise import NoiseFloor, Series, correlation


class Contrast(Record):
    """Candidate over incumbent on the logarithmic scale."""

    log_ratio: float
    information: float
    """Launch variance over the variance of log_ratio: n/2 for n launches a side, less what drift costs."""
    launches: tuple[int, int]
    """Of the incumbent and of the candidate."""

    def standard_error(self, noise: NoiseFloor) -> float:
        """Of log_ratio."""
        return noise.sd / math.sqrt(self.information)

    def effect(self, noise: NoiseFloor, quantile: float, concurrency: int | None) -> Effect:
        """Relative change with the interval of so many standard errors to each side."""
        reach = quantile * self.standard_error(noise)
        return Effect(
            concurrency=concurrency,
            effect=relative(self.log_ratio),
            low=relative(self.log_ratio - reach),
            high=relative(self.log_ratio + reach),
            launches=self.launches,
        )


def relative(log_ratio: float) -> float:
    """exp(x) - 1, capped where a float ends."""
    return math.expm1(min(log_ratio, 700.0))


def contrast(incumbent: Series, candidate: Series) -> Contrast | None:
    """Generalised least squares: launches near in time share the drift and are compared more closely.

    None when one side has no value.
    """
    import numpy as np

    if not incumbent or not candidate:
        return None
    at = [p for p, _ in incumbent] + [p for p, _ in candidate]
    y = np.array([v for _, v in incumbent] + [v for _, v in candidate])
    is_candidate = np.arange(len(y)) >= len(incumbent)
    root = np.linalg.cholesky(correlation(at))
    white = np.linalg.solve(root, np.column_stack([np.ones(len(y)), is_candidate, y]))
    design, target = white[:, :2], white[:, 2]
    covariance = np.linalg.inv(design.T @ design)
    ratio = float((covariance @ design.T @ target)[1])
    return Contrast(
        log_ratio=ratio,
        information=float(1 / covariance[1, 1]),
        launches=(len(incumbent), len(candidate)),
    )


def interval(
    incumbent: Series,
    candidate: Series,
    noise: NoiseFloor,
    *,
    level: float = 0.95,
    concurrency: int | None = None,
) -> Effect | None:
    """Relative change with its two-sided Student interval, for launches whose number was fixed beforehand.

    None when one side has no value, or when the noise is unknown.
    """
    found = contrast(incumbent, candidate)
    if found is None or noise.df <= 0:
        return None
    return found.effect(noise, student((1 + level) / 2, noise.df), concurrency)
