"""The noise floor of a host: what two launches of one configuration differ by."""

import math
from collections.abc import Mapping, Sequence
from statistics import variance
from typing import TYPE_CHECKING

from moeagent.memory.records import Goal, Launch, Record
from moeagent.tools.stats.score import goal_series, repeat_logs, rung_series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Series = Sequence[tuple[int, float]]
"""(position in the campaign, logarithm of the measure), one entry per launch of one configuration."""

DRIFT_RATIO = 0.35
"""Standard deviation of the machine's slow drift over that of a launch: clocks and heat move a long campaign
by about a third of what two launches differ by. A machine without drift is then taken to repeat at most 6 %
better than it does."""
DRIFT_SPAN = 20.0
"""Launches after which the drift is mostly forgotten (correlation 1/e)."""
LEAST_SD = 0.002
"""No launch is taken to repeat better than this, however well two of them agree."""
USUAL_SD = 0.04
"""Launch noise that is assumed with PRIOR_DF degrees of freedom, for decisions against an idea only."""
PRIOR_DF = 4.0


class NoiseFloor(Record):
    """Launch noise of one measure, on the logarithmic scale: 0.04 is 4 %."""

    sd: float
    """Between launches of one configuration, drift removed; 0 with df 0 when nothing was repeated."""
    df: float
    """Degrees of freedom behind sd."""
    within_sd: float | None = None
    """Between repeats of a rung within a launch; None without repeats."""
    earlier: int = 0
    """Earlier launches of this host, of configurations launched more than once, that sd rests on too."""

    def cautious(self) -> "NoiseFloor":
        """With a weak prior added, so that an idea can be dropped before the noise is well known."""
        df = self.df + PRIOR_DF
        variance = (self.df * self.sd**2 + PRIOR_DF * USUAL_SD**2) / df
        return self.model_copy(update={"sd": math.sqrt(variance), "df": df})


class NoiseModel(Record):
    """The noise floor of the goal's score and of output tok/s at each concurrency."""

    goal: NoiseFloor
    rungs: dict[int, NoiseFloor]


def correlation(positions: Sequence[int]) -> "NDArray[np.float64]":
    """Covariance of launches at these positions in units of the launch variance: launch noise plus drift."""
    import numpy as np

    at = np.asarray(positions, dtype=float)
    drift: NDArray[np.float64] = DRIFT_RATIO**2 * np.exp(-np.abs(at[:, None] - at[None, :]) / DRIFT_SPAN)
    return drift + np.eye(len(at))


def noise_floor(groups: Sequence[Series], earlier: Sequence[Series] = ()) -> NoiseFloor:
    """Pooled over every configuration launched more than once.

    groups: this campaign's configurations, one series each. earlier: series of other campaigns on this host,
    whose drift counts as noise.
    """
    repeated = [g for g in earlier if len(g) > 1]
    squares, df = _residual([g for g in groups if len(g) > 1])
    for group in repeated:
        squares += variance([value for _, value in group]) * (len(group) - 1)
        df += len(group) - 1
    sd = max(LEAST_SD, math.sqrt(squares / df)) if df else 0.0
    return NoiseFloor(sd=sd, df=df, earlier=sum(map(len, repeated)))


def _residual(groups: Sequence[Series]) -> tuple[float, float]:
    """Generalised residual sum of squares about one level per series under common drift, and its degrees."""
    import numpy as np

    if not groups:
        return 0.0, 0.0
    at = [position for group in groups for position, _ in group]
    y = np.array([value for group in groups for _, value in group])
    design = np.zeros((len(y), len(groups)))
    start = 0
    for column, group in enumerate(groups):
        design[start : start + len(group), column] = 1
        start += len(group)
    root = np.linalg.cholesky(correlation(at))
    white = np.linalg.solve(root, np.column_stack([design, y]))
    level, target = white[:, :-1], white[:, -1]
    fitted = level @ np.linalg.solve(level.T @ level, level.T @ target)
    return float(((target - fitted) ** 2).sum()), float(len(y) - len(groups))


def within_sd(goal: Goal, launches: Sequence[Launch], price_per_hour: float | None = None) -> float | None:
    """Standard deviation of the logarithm between repeats of a rung within a launch; None without repeats."""
    total, df = 0.0, 0
    for launch in launches:
        for logs in repeat_logs(goal, launch.rungs, price_per_hour).values():
            mean = sum(logs) / len(logs)
            total += sum((x - mean) ** 2 for x in logs)
            df += len(logs) - 1
    return math.sqrt(total / df) if df else None


def noise_model(
    goal: Goal,
    launches: Sequence[Launch],
    *,
    earlier: Sequence[Sequence[Launch]] = (),
    price_per_hour: float | None = None,
) -> NoiseModel:
    """From all launches of the campaign so far, and the launches of each earlier campaign on this host."""
    own = list(_by_config(launches).values())
    others = [group for campaign in earlier for group in _by_config(campaign).values()]

    def goal_of(group: Sequence[Launch]) -> Series:
        return goal_series(goal, group, strict=False, price_per_hour=price_per_hour)[0]

    floor = noise_floor([goal_of(g) for g in own], [goal_of(g) for g in others])
    ladder = sorted({r.concurrency for launch in launches for r in launch.rungs})
    rungs = {
        c: noise_floor([rung_series(g, c) for g in own], [rung_series(g, c) for g in others]) for c in ladder
    }
    return NoiseModel(
        goal=floor.model_copy(update={"within_sd": within_sd(goal, launches, price_per_hour)}), rungs=rungs
    )


def _by_config(launches: Sequence[Launch]) -> Mapping[str, list[Launch]]:
    groups: dict[str, list[Launch]] = {}
    for launch in launches:
        groups.setdefault(launch.config.id, []).append(launch)
    return groups
