"""Memory of llama.cpp on a CPU machine: weights, the KV cache of the total context, compute buffers."""

from typing import Literal

from moeagent.tools.predict.kv import GIB, kv_bytes_per_token
from moeagent.tools.predict.parameters import bytes_per_param, count
from moeagent.tools.predict.records import Machine, MemoryLine, MemoryTable, ModelShape
from moeagent.tools.predict.settings import EngineSettings

_DEFAULT_SLOTS = 4
_DEFAULT_CHUNK = 512
_COMPUTE_BUFFER_BYTES = 8
_TIGHT_SHARE = 0.1


def slots(settings: EngineSettings) -> int:
    """Requests that are decoded together; llama-server chooses four when it is not told."""
    return settings.slots if settings.slots and settings.slots > 0 else _DEFAULT_SLOTS


def slot_context(settings: EngineSettings, model: ModelShape) -> int:
    """Tokens that one request may hold; without -np the slots share one context."""
    total = settings.context_len or model.max_context
    return total // slots(settings) if settings.slots and settings.slots > 0 else total


def file_bytes_per_param(model: ModelShape) -> float:
    """From the file's size where it is known, else from the weight formats."""
    parts = count(model)
    if model.file_gib:
        return model.file_gib * GIB / parts.total
    size = parts.experts * bytes_per_param(model.formats.experts)
    size += (parts.total - parts.experts) * bytes_per_param(model.formats.attention)
    return size / parts.total


def cpu_memory(settings: EngineSettings, machine: Machine, model: ModelShape) -> MemoryTable:
    """The memory table against the machine's RAM; an unknown RAM is tight, never refused."""
    weights = file_bytes_per_param(model) * count(model).total / GIB
    context, cell = settings.context_len or model.max_context, kv_bytes_per_token(model, settings)
    buffers = (settings.chunk or _DEFAULT_CHUNK) * (model.hidden + model.vocab) * _COMPUTE_BUFFER_BYTES / GIB
    cache, total = context * cell / GIB, machine.memory_mib / 1024
    room = total - weights - cache - buffers
    return MemoryTable(
        lines=(
            MemoryLine(name="weights", gib=weights),
            MemoryLine(name="KV cache", gib=cache, note=f"{context:,} tokens of {cell:,.0f} B"),
            MemoryLine(name="compute buffers", gib=buffers),
        ),
        total_gib=total,
        fraction=1.0,
        fraction_source="engine default",
        weights_gib=weights,
        kv_bytes_per_token=cell,
        kv_pool_gib=cache,
        kv_tokens=context,
        start_headroom_gib=room,
        load_headroom_gib=room,
        uncertainty_gib=_TIGHT_SHARE * weights,
        verdict=_verdict(total, room),
        why=f"{room:.2f} GiB of {total:.1f} GiB RAM left" if total else "the machine's RAM is not known",
        max_running=slots(settings),
        pool_is_left=False,
    )


def _verdict(total: float, room: float) -> Literal["fits", "tight", "does_not_fit"]:
    if not total:
        return "tight"
    if room < 0:
        return "does_not_fit"
    return "tight" if room < _TIGHT_SHARE * total else "fits"
