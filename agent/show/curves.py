"""What was measured of each configuration: throughput and latency at each concurrency, over its launches."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from moeagent.memory.records import Rung, ServerConfig
from moeagent.memory.run_view import RunView

Role = Literal["baseline", "best", "candidate"]


@dataclass(frozen=True)
class Point:
    """One configuration at one concurrency: means over launches, with the lowest and highest launch."""

    concurrency: int
    tok_s: float
    low: float
    high: float
    launches: int
    latency_s: float | None
    """Median end-to-end latency of a request; None where it was not measured."""


@dataclass(frozen=True)
class Curve:
    """One configuration's points, in the order of concurrency."""

    label: str
    hypothesis: str | None
    role: Role
    config: ServerConfig
    points: tuple[Point, ...]


def curves(view: RunView) -> tuple[Curve, ...]:
    """Every configuration that was launched, in the order of first launches; some have no usable point."""
    return tuple(_curve(view, config, label) for label, config in labelled_configs(view))


def labelled_configs(view: RunView) -> list[tuple[str, ServerConfig]]:
    """Each launched configuration once, named after its hypothesis, and its launch where that has several."""
    first = {launch.config.id: launch for launch in reversed(view.ledger.launches)}
    ordered = [launch for launch in view.ledger.launches if first[launch.config.id] is launch]
    owners = [launch.hypothesis for launch in ordered]
    return [
        (
            launch.hypothesis or "baseline"
            if owners.count(launch.hypothesis) == 1
            else f"{launch.hypothesis or 'baseline'} from {launch.id}",
            launch.config,
        )
        for launch in ordered
    ]


def front(found: Sequence[Curve]) -> tuple[tuple[Curve, Point], ...]:
    """The points that no other point beats in throughput and in latency at once, quickest first."""
    every = [(c, p) for c in found for p in c.points if p.latency_s is not None]
    every.sort(key=lambda pair: (pair[1].latency_s or 0.0, -pair[1].tok_s))
    kept: list[tuple[Curve, Point]] = []
    for curve, point in every:
        if not kept or point.tok_s > kept[-1][1].tok_s:
            kept.append((curve, point))
    return tuple(kept)


def _curve(view: RunView, config: ServerConfig, label: str) -> Curve:
    launches = view.ledger.launches_of(config)
    concurrencies = sorted({r.concurrency for launch in launches for r in launch.rungs})
    at = [(c, view.ledger.rungs_at(config, c)) for c in concurrencies]
    return Curve(
        label=label,
        hypothesis=launches[0].hypothesis,
        role=_role(view, config),
        config=config,
        points=tuple(_point(c, rungs) for c, rungs in at if rungs),
    )


def _role(view: RunView, config: ServerConfig) -> Role:
    if view.ledger.baseline and config.id == view.ledger.baseline.id:
        return "baseline"
    return "best" if view.best and config.id == view.best.id else "candidate"


def _point(concurrency: int, rungs: Sequence[Rung]) -> Point:
    rates = [rung.output_tok_s for rung in rungs if rung.output_tok_s is not None]
    waits = [rung.e2e_ms.p50 / 1000 for rung in rungs if rung.e2e_ms]
    return Point(
        concurrency=concurrency,
        tok_s=fmean(rates),
        low=min(rates),
        high=max(rates),
        launches=len(rates),
        latency_s=fmean(waits) if waits else None,
    )
