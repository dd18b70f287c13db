"""The chance that a server dies, at start or under load, and why."""

import math

from moeagent.memory.records import ServerConfig
from moeagent.tools.predict import tables
from moeagent.tools.predict.records import Machine, MemoryTable, ModelShape, Prediction, Unknown
from moeagent.tools.predict.settings import read_settings
from moeagent.tools.predict.tables.schema import Hazard
from moeagent.tools.predict.weights import formats_in_force

_CERTAIN = 0.97
_UNKNOWN = 0.2
_BASE = 0.02
_LOAD_DOUBT_GIB = 1.0
_LARGEST = 0.95


def risk(prediction: Prediction) -> tuple[float, str]:
    """Chance 0..1 that the server dies, from memory and arithmetic alone, and the reason."""
    memory = prediction.memory
    if prediction.refusals:
        return _CERTAIN, prediction.refusals[0]
    if memory is None:
        return _UNKNOWN, next(iter(prediction.problems), "memory could not be predicted")
    start = _chance(memory.start_headroom_gib, memory.uncertainty_gib)
    load = _chance(memory.load_headroom_gib, math.hypot(_LOAD_DOUBT_GIB, memory.uncertainty_gib / 4))
    pool = _pool_chance(memory)
    worst = max(start, load, pool)
    why = memory.why if worst > _BASE else "memory has room"
    return min(max(worst, _BASE), _LARGEST), why


def risk_of(
    config: ServerConfig, prediction: Prediction, machine: Machine | Unknown, model: ModelShape | Unknown
) -> tuple[float, str]:
    """As risk, with the hazards that are published for this configuration on this kind of machine."""
    chance, why = risk(prediction)
    if isinstance(machine, Unknown) or isinstance(model, Unknown):
        return chance, why
    for hazard in tables.hazards():
        if _applies(hazard, config, machine, model):
            combined = 1 - (1 - chance) * (1 - hazard.risk)
            if hazard.risk > chance:
                why = f"{hazard.stage}: {hazard.why}"
            chance = min(combined, _CERTAIN)
    return chance, why


def _chance(headroom_gib: float, doubt_gib: float) -> float:
    """Logistic in the head-room over its doubt."""
    return 1 / (1 + math.exp(min(2 * headroom_gib / max(doubt_gib, 0.1), 60)))


def _pool_chance(memory: MemoryTable) -> float:
    """Chance that nothing is left for the pool."""
    if not memory.pool_is_left or memory.kv_pool_gib > 2 * memory.uncertainty_gib:
        return 0.0
    return _chance(memory.kv_pool_gib, memory.uncertainty_gib)


def _applies(hazard: Hazard, config: ServerConfig, machine: Machine, model: ModelShape) -> bool:
    if hazard.engine != config.engine or hazard.flag not in config.flags:
        return False
    if hazard.unless is not None and config.flags.get(hazard.unless, False) is not False:
        return False
    if hazard.value is not None and str(config.flags[hazard.flag]).lower() != hazard.value:
        return False
    if hazard.above is not None and not _above(config.flags[hazard.flag], hazard.above):
        return False
    if hazard.sm is not None and (machine.spec is None or not machine.spec.sm.startswith(hazard.sm)):
        return False
    if hazard.experts is not None:
        return formats_in_force(model, read_settings(config)).experts == hazard.experts
    return True


def _above(value: object, bound: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > bound
