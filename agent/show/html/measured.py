"""Tables of what was measured."""

from collections.abc import Sequence

from moeagent.agent.show.constraints import checks
from moeagent.agent.show.curves import Curve, Point, front
from moeagent.agent.show.equal_launches import HEAD as HEAD_EQUAL
from moeagent.agent.show.equal_launches import equal_launches
from moeagent.agent.show.html.table import Cell, Row, Table, Tone, table
from moeagent.agent.show.power import HEAD, power_rows
from moeagent.agent.show.stability import Boundary, State, boundary
from moeagent.agent.show.text import rate
from moeagent.memory.records import Distribution, Launch, Rung, ServerConfig
from moeagent.memory.run_view import RunView

STATE_TONES: dict[State, Tone] = {
    "serves": "good",
    "failed": "bad",
    "not usable": "unsure",
    "not tried": "quiet",
}
RAW_HEAD = (
    "launch", "#concurrency", "#completed", "#failed", "#seconds", "#output tok/s", "#total tok/s",
    "#TTFT p50 ms", "#TTFT p99 ms", "#TPOT p50 ms", "#TPOT p99 ms", "#ITL p99 ms", "#e2e p50 ms",
    "#e2e p99 ms", "remark",
)  # fmt: skip


def throughput_table(curves: Sequence[Curve]) -> Table:
    """The figures of the throughput picture."""
    concurrencies = sorted({p.concurrency for c in curves for p in c.points})
    rows: list[Row] = []
    for curve in curves:
        at = {p.concurrency: _with_range(p) for p in curve.points}
        rows.append([name_cell(curve), *(at.get(c, "-") for c in concurrencies)])
    head = ("configuration", *(f"#at {c}" for c in concurrencies))
    return table("Output tok/s: mean over launches; below it, lowest to highest launch", head, rows)


def front_table(curves: Sequence[Curve]) -> Table:
    """The points of the Pareto front."""
    rows: list[Row] = [
        [name_cell(curve), str(p.concurrency), f"{p.latency_s or 0.0:.3g}", rate(p.tok_s)]
        for curve, p in front(curves)
    ]
    head = ("configuration", "#concurrency", "#latency p50, s", "#output tok/s")
    return table("Pareto front: no other point is quicker and faster at once", head, rows)


def latency_table(curves: Sequence[Curve]) -> Table:
    """Median latency of every point, on the front or not."""
    rows: list[Row] = [
        [name_cell(curve), str(p.concurrency), f"{p.latency_s:.3g}", rate(p.tok_s), str(p.launches)]
        for curve in curves
        for p in curve.points
        if p.latency_s is not None
    ]
    head = ("configuration", "#concurrency", "#latency p50, s", "#output tok/s", "#launches")
    return table("Every point of the picture", head, rows)


def name_cell(curve: Curve) -> Cell:
    """The configuration's name, leading to its hypothesis; the best is said to be it."""
    text = f"{curve.label} (best)" if curve.role == "best" else curve.label
    link = f"#{curve.hypothesis}" if curve.hypothesis else ""
    return Cell(text, "good" if curve.role == "best" else "", link)


def constraint_table(view: RunView, config: ServerConfig) -> Table | None:
    """Every bound at every concurrency; None where no bound was set."""
    held = {True: Cell("holds", "good"), False: Cell("broken", "bad")}
    rows: list[Row] = [[c.bound, str(c.concurrency), c.worst, held[c.holds]] for c in checks(view, config)]
    head = ("constraint", "#concurrency", "#worst launch", "")
    return table("Constraints of the goal on this configuration", head, rows) if rows else None


def boundary_table(view: RunView) -> Table:
    """Each configuration against each concurrency that was tried."""
    found: Boundary = boundary(view)
    rows: list[Row] = [
        [
            row.label,
            *(Cell(state, STATE_TONES[state]) for state in row.states),
            str(row.last_good or "-"),
            str(row.first_failed or "-"),
            row.outcomes,
        ]
        for row in found.rows
    ]
    at = [f"at {c}" for c in found.concurrencies]
    head = ("configuration", *at, "#last good", "#first failed", "launches")
    return table("Where each configuration works", head, rows)


def power_table(launches: Sequence[Launch]) -> Table | None:
    """What the GPUs drew in each rung and how they were clocked; None when they were not sampled."""
    rows = power_rows(launches)
    return table("The host's GPUs while each rung was measured", figures(HEAD), rows) if rows else None


def equal_table(view: RunView) -> Table | None:
    """How far launches of one configuration lie apart; None where none was launched twice."""
    rows = equal_launches(view)
    return table("Launches of the same configuration (A/A)", figures(HEAD_EQUAL), rows) if rows else None


def figures(head: Sequence[str]) -> tuple[str, ...]:
    """A table's head whose columns between the first and the last hold figures."""
    return head[0], *(f"#{name}" for name in head[1:-1]), head[-1]


def raw_table(launches: Sequence[Launch]) -> Table:
    """Every rung of every launch."""
    rows = [[launch.id, *_raw(rung)] for launch in launches for rung in launch.rungs]
    return table("Every rung of every launch", RAW_HEAD, rows)


def _raw(rung: Rung) -> list[str]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(rung.failures_by_kind.items()))
    return [
        str(rung.concurrency),
        str(rung.completed),
        str(rung.failed),
        f"{rung.duration_s:.1f}",
        rate(rung.output_tok_s),
        rate(rung.total_tok_s),
        *(_ms(d, p) for d, p in ((rung.ttft_ms, "p50"), (rung.ttft_ms, "p99"))),
        *(_ms(d, p) for d, p in ((rung.tpot_ms, "p50"), (rung.tpot_ms, "p99"))),
        _ms(rung.itl_ms, "p99"),
        *(_ms(d, p) for d, p in ((rung.e2e_ms, "p50"), (rung.e2e_ms, "p99"))),
        "; ".join(filter(None, (rung.invalid, kinds, rung.note))),
    ]


def _ms(distribution: Distribution | None, percentile: str) -> str:
    return "-" if distribution is None else f"{getattr(distribution, percentile):.1f}"


def _with_range(point: Point) -> str:
    mean = rate(point.tok_s)
    return mean if point.launches == 1 else f"{mean}\n{rate(point.low)} to {rate(point.high)}"
