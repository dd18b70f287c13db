"""Time of collective operations by size, number of GPUs and fabric."""

import math
from bisect import bisect_left
from collections.abc import Sequence

from moeagent.tools.predict import tables
from moeagent.tools.predict.records import Machine
from moeagent.tools.predict.settings import EngineSettings
from moeagent.tools.predict.tables.schema import Fabric


def fabric_in_use(machine: Machine, settings: EngineSettings) -> Fabric:
    """The machine's fabric, or the variant of it that the configuration's environment and flags select."""
    variant = settings.fabric_variant
    if not variant and settings.custom_allreduce_off and "nvlink" in machine.fabric:
        variant = "nccl"
    known = tables.fabrics()
    return known.get(f"{machine.fabric}-{variant}", known[machine.fabric])


def allreduce_us(fabric: Fabric, size_bytes: float, gpus: int) -> float:
    """One all-reduce, log-log between the table's sizes and beyond them; 0 for one GPU."""
    if gpus <= 1:
        return 0.0
    columns = sorted(fabric.allreduce_us)
    if gpus in fabric.allreduce_us:
        return _interpolate(fabric.bytes, fabric.allreduce_us[gpus], size_bytes)
    low = max((n for n in columns if n < gpus), default=columns[0])
    high = min((n for n in columns if n > gpus), default=columns[-1])
    first = _interpolate(fabric.bytes, fabric.allreduce_us[low], size_bytes)
    if low == high:
        return first * (gpus - 1) / (low - 1) if gpus > low else first
    second = _interpolate(fabric.bytes, fabric.allreduce_us[high], size_bytes)
    return first + (second - first) * (gpus - low) / (high - low)


def gather_us(fabric: Fabric, size_bytes: float, gpus: int) -> float:
    """One all-gather, reduce-scatter or all-to-all of this size: half an all-reduce, as measured."""
    return allreduce_us(fabric, size_bytes, gpus) / 2


def _interpolate(sizes: Sequence[int], values: Sequence[float], size: float) -> float:
    if size <= sizes[0]:
        return values[0]
    i = min(bisect_left(sizes, size), len(sizes) - 1)
    slope = math.log(values[i] / values[i - 1]) / math.log(sizes[i] / sizes[i - 1])
    return float(values[i] * (size / sizes[i]) ** slope)
