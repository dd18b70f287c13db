"""Effects of flags that no formula describes, as published."""

import math
from collections.abc import Iterator

from moeagent.memory.records import ServerConfig
from moeagent.tools.predict import tables
from moeagent.tools.predict.collectives import fabric_in_use
from moeagent.tools.predict.records import Estimate, Machine
from moeagent.tools.predict.settings import EngineSettings, read_settings
from moeagent.tools.predict.tables.schema import Prior, PriorPoint


def published(config: ServerConfig, machine: Machine, concurrency: int) -> Iterator[tuple[Prior, Estimate]]:
    """For each flag of a configuration with a published effect: the entry that fits best, and its factor."""
    settings = read_settings(config)
    for flag in config.flags:
        entries = [p for p in tables.priors() if _applies(p, config, flag, settings, machine)]
        best = max(
            entries, key=lambda p: (p.needs_a2a, p.value is not None, p.fabric is not None), default=None
        )
        if best is not None:
            point = _at(best.points, concurrency)
            yield best, Estimate(value=1 + point.effect, low=1 + point.low, high=1 + point.high)


def published_factor(config: ServerConfig, machine: Machine, concurrency: int) -> float:
    """The product of all published effects of a configuration at a concurrency."""
    return math.prod(factor.value for _, factor in published(config, machine, concurrency))


def _applies(
    prior: Prior, config: ServerConfig, flag: str, settings: EngineSettings, machine: Machine
) -> bool:
    if prior.engine != config.engine or prior.flag != flag:
        return False
    if prior.value is not None and prior.value not in str(config.flags[flag]):
        return False
    if prior.needs_a2a and not settings.has_a2a:
        return False
    if prior.fabric is None:
        return True
    return settings.gpus > 1 and fabric_in_use(machine, settings).kind == prior.fabric


def _at(points: tuple[PriorPoint, ...], concurrency: int) -> PriorPoint:
    """The point at a concurrency, on a log line between the published ones."""
    low = max(
        (p for p in points if p.concurrency <= concurrency), key=lambda p: p.concurrency, default=points[0]
    )
    high = min(
        (p for p in points if p.concurrency >= concurrency), key=lambda p: p.concurrency, default=points[-1]
    )
    if low.concurrency >= high.concurrency:
        return high if high.concurrency == concurrency else low
    part = math.log(concurrency / low.concurrency) / math.log(high.concurrency / low.concurrency)
    mixed = {
        f: getattr(low, f) + part * (getattr(high, f) - getattr(low, f)) for f in ("effect", "low", "high")
    }
    return PriorPoint(concurrency=concurrency, **mixed)
