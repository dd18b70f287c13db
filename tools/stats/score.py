"""The goal's score of one launch, and which rung it comes from.

| goal           | score of a rung                                  | better |
|----------------|--------------------------------------------------|--------|
| max-throughput | output tokens per second                         | higher |
| max-goodput    | requests per second within the service objective | higher |
| min-latency    | median end-to-end latency of a request, seconds  | lower  |
| min-cost       | price (or joules) per million output tokens      | lower  |

The launch's score is that of its best rung among those that hold every constraint. For min-latency this is
the lowest concurrency that holds them, as latency rises with load: what one user waits for, unless a bound on
throughput asks for more load.
"""

import math
from collections.abc import Mapping, Sequence

from moeagent.memory.records import Goal, Launch, Record, Rung
from moeagent.tools.stats.metrics import broken, unknown

_SPEED = Goal(name="max-throughput")


class Score(Record):
    """One launch by the goal's measure."""

    value: float
    concurrency: int
    higher_is_better: bool


def rung_value(goal: Goal, rung: Rung, price_per_hour: float | None = None) -> float | None:
    """The goal's measure of one rung, constraints aside; None when it cannot be known or is not positive."""
    value: float | None
    if goal.name == "max-throughput":
        value = rung.output_tok_s
    elif goal.name == "max-goodput":
        value = None if rung.invalid else rung.goodput_rps
    elif goal.name == "min-latency":
        value = rung.e2e_ms.p50 / 1000 if rung.e2e_ms and not rung.invalid else None
    else:
        value = _cost_per_million(rung, price_per_hour)
    return value if value and value > 0 and math.isfinite(value) else None


def _cost_per_million(rung: Rung, price_per_hour: float | None) -> float | None:
    if not rung.output_tok_s:
        return None
    if price_per_hour:
        return price_per_hour / 3600 / rung.output_tok_s * 1e6
    joules = rung.energy_per_token_j
    return None if joules is None else joules * 1e6


def unmeasured(goal: Goal, rung: Rung, price_per_hour: float | None = None) -> bool:
    """Whether the rung speaks neither for nor against the server: measured badly, or its energy not known."""
    by_energy = goal.name == "min-cost" and not price_per_hour
    return unknown(goal, rung) or (by_energy and bool(rung.output_tok_s) and rung.energy_j is None)


def repeat_logs(
    goal: Goal, rungs: Sequence[Rung], price_per_hour: float | None = None
) -> dict[int, list[float]]:
    """Logarithms of the measure by concurrency, one per repeat within the launch.

    A repeat that breaks a constraint or has no value takes its concurrency out.
    """
    found: dict[int, list[float]] = {}
    out = set()
    for rung in rungs:
        value = None if broken(rung, goal.constraints) else rung_value(goal, rung, price_per_hour)
        if value is None:
            out.add(rung.concurrency)
        else:
            found.setdefault(rung.concurrency, []).append(math.log(value))
    return {concurrency: logs for concurrency, logs in found.items() if concurrency not in out}


def rung_logs(goal: Goal, rungs: Sequence[Rung], price_per_hour: float | None = None) -> dict[int, float]:
    """Mean logarithm of the measure by concurrency, over the repeats within the launch."""
    repeats = repeat_logs(goal, rungs, price_per_hour)
    return {concurrency: sum(logs) / len(logs) for concurrency, logs in repeats.items()}


def best_rung(goal: Goal, values: Mapping[int, float]) -> int | None:
    """The concurrency with the best value (or logarithm of it); None when there is none."""
    if not values:
        return None
    choose = max if goal.higher_is_better else min
    return choose(values, key=lambda concurrency: values[concurrency])


def score(goal: Goal, rungs: Sequence[Rung], *, price_per_hour: float | None = None) -> Score | None:
    """The launch's score; None (no value, never 0) when no rung holds the constraints."""
    logs = rung_logs(goal, rungs, price_per_hour)
    concurrency = best_rung(goal, logs)
    if concurrency is None:
        return None
    value = math.exp(logs[concurrency])
    return Score(value=value, concurrency=concurrency, higher_is_better=goal.higher_is_better)


def goal_series(
    goal: Goal, launches: Sequence[Launch], *, strict: bool, price_per_hour: float | None = None
) -> tuple[list[tuple[int, float]], int | None]:
    """(position, log score, more is better) of each launch at the one rung that is best over all of them.

    One rung for the whole series, so that a launch's luck does not choose it. With strict a concurrency
    counts only if it held in every launch that reached it or died before it (a candidate); otherwise in more
    than half of them (an incumbent, whose one bad launch must not make the others look better). A rung that
    was measured badly speaks neither for nor against; one that no launch measured well leaves no score.
    """
    tables = [rung_logs(goal, launch.rungs, price_per_hour) for launch in launches]
    badly = [
        {r.concurrency for r in launch.rungs if unmeasured(goal, r, price_per_hour)} for launch in launches
    ]
    if badly and set.intersection(*badly):
        return [], None
    seen: dict[int, list[float]] = {}
    for table in tables:
        for concurrency, log in table.items():
            seen.setdefault(concurrency, []).append(log)
    known = {c: sum(c not in bad for bad in badly) for c in seen}
    least = {c: n if strict else n // 2 + 1 for c, n in known.items()}
    levels = {c: sum(logs) / len(logs) for c, logs in seen.items() if len(logs) >= least[c]}
    rung = best_rung(goal, levels)
    sign = 1 if goal.higher_is_better else -1
    series = [
        (position(launch), sign * table[rung])
        for launch, table in zip(launches, tables, strict=True)
        if rung is not None and rung in table
    ]
    return series, rung


def rung_series(launches: Sequence[Launch], concurrency: int) -> list[tuple[int, float]]:
    """(position, log output tok/s) of each launch that measured this concurrency, constraints aside."""
    series = []
    for launch in launches:
        logs = rung_logs(_SPEED, [r for r in launch.rungs if r.concurrency == concurrency])
        if concurrency in logs:
            series.append((position(launch), logs[concurrency]))
    return series


def position(launch: Launch) -> int:
    """Place of the launch in the campaign: its id is L and a running number. Raises ValueError for others."""
    return int(launch.id.removeprefix("L"))
