"""The predicted effect of a change: child against parent, at each concurrency, with a range."""

import math

from moeagent.memory.records import PredictedEffect, ServerConfig, Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.calibration import Calibration, layout_key
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.published import published
from moeagent.tools.predict.records import Estimate, Machine, ModelShape, Prediction, Unknown
from moeagent.tools.predict.settings import read_settings

_FLOOR = 0.01
_UNMODELLED = 0.05
_SHARE = 0.5
_LAYOUT = 0.08
_SPECULATION = 0.1


def effects(
    parent: ServerConfig,
    child: ServerConfig,
    machine: Machine | Unknown,
    model: ModelShape | Unknown,
    workload: Workload,
    calibration: Calibration | None = None,
) -> tuple[PredictedEffect, ...]:
    """Relative change of output tok/s at each rung of the ladder; empty when it cannot be told.

    The host's speed correction cancels in the ratio. Flags that no formula describes add the published
    effect, or nothing and a wider range.
    """
    before = predict(parent, machine, model, workload, calibration)
    after = predict(child, machine, model, workload, calibration)
    return effects_between(parent, before, child, after, machine)


def effects_between(
    parent: ServerConfig,
    before: Prediction,
    child: ServerConfig,
    after: Prediction,
    machine: Machine | Unknown,
) -> tuple[PredictedEffect, ...]:
    """As `effects`, from predictions of both that are at hand."""
    if not before.rungs or not after.rungs or isinstance(machine, Unknown):
        return ()
    if after.memory is not None and after.memory.kv_pool_gib <= 0:
        return ()  # it may fit all the same, and nobody knows the pool that it would have
    doubt = _change_doubt(parent, child)
    found = []
    for old, new in zip(before.rungs, after.rungs, strict=True):
        ratio = new.output_tok_s.value / old.output_tok_s.value
        known = _published(parent, child, machine, old.concurrency)
        modelled = ratio / known.value
        half = max(abs(modelled - 1) * _SHARE, _FLOOR) + doubt
        low, high = (modelled - half) * known.low, (modelled + half) * known.high
        found.append(
            PredictedEffect(
                concurrency=old.concurrency,
                effect=ratio - 1,
                low=max(min(low, ratio) - 1, -1.0),
                high=max(high, ratio) - 1,
            )
        )
    return tuple(found)


def _published(parent: ServerConfig, child: ServerConfig, machine: Machine, concurrency: int) -> Estimate:
    """The published part of the ratio: entries of both cancel."""
    before = {p.flag: e for p, e in published(parent, machine, concurrency)}
    after = {p.flag: e for p, e in published(child, machine, concurrency)}
    shared = {flag for flag in before.keys() & after.keys() if before[flag] == after[flag]}
    value, low, high = 1.0, 1.0, 1.0
    for flag, factor in after.items():
        if flag not in shared:
            value, low, high = value * factor.value, low * factor.low, high * factor.high
    for flag, factor in before.items():
        if flag not in shared:
            value, low, high = value / factor.value, low / factor.high, high / factor.low
    return Estimate(value=value, low=low, high=high)


def _change_doubt(parent: ServerConfig, child: ServerConfig) -> float:
    """Extra half-width for flags without a formula or a published effect, and for another engine install."""
    before, after = read_settings(parent), read_settings(child)
    new = set(after.unmodelled) ^ set(before.unmodelled)
    new |= {n for n in after.unmodelled if child.flags.get(n) != parent.flags.get(n)}
    without_prior = {name for name in new if not any(p.flag == name for p in tables.priors())}
    env = parent.env != child.env and before.fabric_variant == after.fabric_variant
    parts = [_UNMODELLED if without_prior else 0, _UNMODELLED if env else 0]
    parts.append(_LAYOUT if layout_key(before) != layout_key(after) else 0)
    parts.append(_SPECULATION if before.spec_algorithm != after.spec_algorithm else 0)
    parts.append(2 * _UNMODELLED if parent.install != child.install else 0)
    return math.hypot(*parts)
