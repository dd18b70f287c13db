"""What was measured of each configuration: throughput and latency at each concurrency, over its launches."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from moeagent.memory.records import Launch, Rung, ServerConfig
from moeagent.memory.run_view import RunView

Role = Literal["baseline", "best", "candidate"]


@dataclass(frozen=True)
class Launched:
    """One configuration with all its launches."""

    label: str
    """Its hypothesis, with the first launch where a hypothesis led to several configurations."""
    launches: tuple[Launch, ...]

    @property
    def config(self) -> ServerConfig:
        """The configuration."""
        return self.launches[0].config


@dataclass(frozen=True)
class Point:
    """One configuration at one concurrency: means over launches, with the lowest and highest launch."""

    concurrency: int
    tok_s: float
    low: float
    high: float
    launches: int
    latency_s: float | None
    """Median end-to-end latency of a request; None where it was not measured or was distorted."""


@dataclass(frozen=True)
class Curve:
    """One configuration's points, in the order of concurrency."""

    label: str
    hypothesis: str | None
    role: Role
    points: tuple[Point, ...]


def launched(view: RunView) -> tuple[Launched, ...]:
    """Each launched configuration once, in the order of first launches."""
    groups: dict[str, list[Launch]] = {}
    for launch in view.ledger.launches:
        groups.setdefault(launch.config.id, []).append(launch)
    owners = [launches[0].hypothesis for launches in groups.values()]
    found = []
    for launches in groups.values():
        owner = launches[0].hypothesis
        name = owner or "baseline"
        label = name if owners.count(owner) == 1 else f"{name} from {launches[0].id}"
        found.append(Launched(label, tuple(launches)))
    return tuple(found)


def curves(view: RunView) -> tuple[Curve, ...]:
    """Every configuration that was launched, in the order of first launches; some have no usable point."""
    best = view.best.id if view.best else ""
    baseline = view.ledger.baseline.id if view.ledger.baseline else ""
    return tuple(_curve(each, baseline, best) for each in launched(view))


def front(found: Sequence[Curve]) -> tuple[tuple[Curve, Point], ...]:
    """The points that no other point beats in throughput and in latency at once, quickest first."""
    every = [(c, p) for c in found for p in c.points if p.latency_s is not None]
    every.sort(key=lambda pair: (pair[1].latency_s or 0.0, -pair[1].tok_s))
    kept: list[tuple[Curve, Point]] = []
    for curve, point in every:
        if not kept or point.tok_s > kept[-1][1].tok_s:
            kept.append((curve, point))
    return tuple(kept)


def _curve(each: Launched, baseline: str, best: str) -> Curve:
    rungs: dict[int, list[Rung]] = {}
    for launch in each.launches:
        for rung in launch.rungs:
            if rung.usable:
                rungs.setdefault(rung.concurrency, []).append(rung)
    identity = each.config.id
    role: Role = "baseline" if identity == baseline else "best" if identity == best else "candidate"
    points = tuple(_point(concurrency, rungs[concurrency]) for concurrency in sorted(rungs))
    return Curve(each.label, each.launches[0].hypothesis, role, points)


def _point(concurrency: int, rungs: Sequence[Rung]) -> Point:
    rates = [rung.output_tok_s for rung in rungs if rung.output_tok_s is not None]
    waits = [rung.e2e_ms.p50 / 1000 for rung in rungs if rung.e2e_ms and not rung.invalid]
    return Point(
        concurrency=concurrency,
        tok_s=fmean(rates),
        low=min(rates),
        high=max(rates),
        launches=len(rates),
        latency_s=fmean(waits) if waits else None,
    )
