"""The predicted effect of a change: child against parent, at each concurrency, with a range."""

import math

from moeagent.memory.records import PredictedEffect, ServerConfig, Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.calibration import Calibration
from moeagent.tools.predict.collectives import fabric_in_use
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Machine, ModelShape, Unknown
from moeagent.tools.predict.settings import EngineSettings, read_settings
from moeagent.tools.predict.tables.schema import Prior, PriorPoint

_FLOOR = 0.01
_UNMODELLED = 0.05
_SHARE = 0.5


def effects(
    parent: ServerConfig,
    child: ServerConfig,
    machine: Machine | Unknown,
    model: ModelShape | Unknown,
    workload: Workload,
    calibration: Calibration | None = None,
) -> tuple[PredictedEffect, ...]:
    """Relative change of output tok/s at each rung of the ladder; empty when it cannot be told.

    The host's speed correction cancels in the ratio. Flags that no formula describes add the published effect, or
    nothing and a wider range.
    """
    before = predict(parent, machine, model, workload, calibration)
    after = predict(child, machine, model, workload, calibration)
    if not before.rungs or not after.rungs or isinstance(machine, Unknown):
        return ()
    change = parent.diff(child)
    doubt = _change_doubt(parent, child)
    found = []
    for old, new in zip(before.rungs, after.rungs, strict=True):
        ratio = new.output_tok_s.value / old.output_tok_s.value
        half = max(abs(ratio - 1) * _SHARE, _FLOOR) + doubt
        mid, low, high = ratio, ratio - half, ratio + half
        for name in (*change.set_flags, *change.remove_flags):
            for config, sign in ((child, 1), (parent, -1)):
                point = _prior(config, name, machine, old.concurrency)
                if point is not None:
                    mid, low, high = _times(mid, low, high, point, sign)
        found.append(
            PredictedEffect(
                concurrency=old.concurrency, effect=mid - 1, low=max(low - 1, -1.0), high=max(high, mid) - 1
            )
        )
    return tuple(found)


def _change_doubt(parent: ServerConfig, child: ServerConfig) -> float:
    """Extra half-width for flags without a formula or a published effect, and for another engine install."""
    before, after = read_settings(parent), read_settings(child)
    new = set(after.unmodelled) ^ set(before.unmodelled)
    new |= {n for n in after.unmodelled if child.flags.get(n) != parent.flags.get(n)}
    without_prior = {name for name in new if not any(p.flag == name for p in tables.priors())}
    env = parent.env != child.env and before.fabric_variant == after.fabric_variant
    parts = [_UNMODELLED if without_prior else 0, _UNMODELLED if env else 0]
    parts.append(2 * _UNMODELLED if parent.install != child.install else 0)
    return math.hypot(*parts)


def _prior(config: ServerConfig, flag: str, machine: Machine, concurrency: int) -> PriorPoint | None:
    """The published effect of this flag in this configuration at this concurrency."""
    if flag not in config.flags:
        return None
    settings = read_settings(config)
    entries = [p for p in tables.priors() if _applies(p, config, flag, settings, machine)]
    best = max(entries, key=lambda p: (p.needs_a2a, p.value is not None, p.fabric is not None), default=None)
    return _at(best.points, concurrency) if best else None


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


def _times(mid: float, low: float, high: float, point: PriorPoint, sign: int) -> tuple[float, float, float]:
    if sign > 0:
        return mid * (1 + point.effect), low * (1 + point.low), high * (1 + point.high)
    return mid / (1 + point.effect), low / (1 + point.high), high / (1 + point.low)
