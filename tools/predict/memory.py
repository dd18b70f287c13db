"""The memory table of one GPU by the engine's own rule, and whether the configuration fits."""

import math
from collections.abc import Sequence

from moeagent.tools.predict import tables
from moeagent.tools.predict.buffers import a2a_gib, activation_gib, graphs_gib, logits_gib, request_pool_gib
from moeagent.tools.predict.calibration import Calibration, layout_key
from moeagent.tools.predict.division import Division, verdict
from moeagent.tools.predict.engine_rules import Defaults, defaults
from moeagent.tools.predict.kv import GIB, kv_bytes_per_token, pool_tokens, state_bytes_per_sequence
from moeagent.tools.predict.records import Machine, MemoryLine, MemoryTable, ModelShape
from moeagent.tools.predict.settings import EngineSettings
from moeagent.tools.predict.weights import has_draft_model, weight_lines

_MIB_PER_GIB = 1024
_MEASURED_GIB = 0.5


def free_before_load_gib(machine: Machine, settings: EngineSettings) -> float:
    """GPU memory that is free after the context and the communicators are up."""
    overhead = tables.constant("context_gib")
    if settings.gpus > 1:
        overhead += tables.constant("collectives_gib")
    return (machine.memory_mib - machine.used_mib) / _MIB_PER_GIB - overhead


def memory_table(
    machine: Machine, model: ModelShape, settings: EngineSettings, calibration: Calibration | None = None
) -> MemoryTable:
    """GiB per GPU by purpose, the KV pool, the head-room at start and under load, and the verdict."""
    known = calibration or Calibration()
    chosen = defaults(settings, model, machine.memory_mib)
    parts = _loaded(model, settings, chosen, known)
    weights = sum(line.gib for line in parts)
    divide = _divide_vllm if settings.engine == "vllm" else _divide_sglang
    division = divide(machine, model, settings, chosen, weights, known)
    calibrated = known.weights_offset(settings) is not None
    doubt = _weights_doubt(weights, known, settings)
    judgement, why = verdict(settings, chosen, division, doubt)
    cell = kv_bytes_per_token(model, settings)
    pool = MemoryLine(
        name="KV pool", gib=division.pool_gib, note=f"{division.kv_tokens:,} tokens of {cell:,.0f} B"
    )
    return MemoryTable(
        lines=(*parts, pool, *division.lines),
        total_gib=machine.memory_mib / _MIB_PER_GIB,
        fraction=chosen.fraction,
        fraction_source="flag" if chosen.fraction_given else "engine default",
        weights_gib=weights,
        kv_bytes_per_token=cell,
        kv_pool_gib=division.pool_gib,
        kv_tokens=division.kv_tokens,
        start_headroom_gib=division.start_gib,
        load_headroom_gib=division.load_gib,
        uncertainty_gib=doubt,
        verdict=judgement,
        why=why,
        max_running=division.max_running,
        calibrated=calibrated,
    )


def _weights_doubt(weights_gib: float, known: Calibration, settings: EngineSettings) -> float:
    """GiB, one standard doubt: a correction that another layout lent may be due in full or not at all."""
    if layout_key(settings) in known.weights_offsets:
        return _MEASURED_GIB
    lent = known.weights_offset(settings) or 0.0
    return math.hypot(weights_gib * tables.constant("weights_uncertainty"), lent)


def _loaded(
    model: ModelShape, settings: EngineSettings, chosen: Defaults, known: Calibration
) -> Sequence[MemoryLine]:
    """Everything that the engine's own weight line covers."""
    parts = [*weight_lines(model, settings)]
    if settings.has_a2a:
        parts.append(
            MemoryLine(name="all-to-all buffers", gib=a2a_gib(model, settings, chosen), note=settings.a2a)
        )
    offset = known.weights_offset(settings)
    if offset is not None:
        parts.append(MemoryLine(name="measured correction", gib=offset, note="earlier launch on this host"))
    return parts


def _divide_sglang(
    machine: Machine,
    model: ModelShape,
    settings: EngineSettings,
    chosen: Defaults,
    weights: float,
    known: Calibration,
) -> Division:
    """SGLang: a fraction of what is free before the load is for weights and pool, the rest for all else."""
    free = known.free_gib or free_before_load_gib(machine, settings)
    static = free * chosen.fraction - weights
    pool, tokens, running = _pool(model, settings, chosen, static)
    pool_table, graphs = request_pool_gib(running, chosen), _graphs_sglang(settings, chosen, known)
    work = activation_gib(model, settings, chosen.chunk)
    fragmentation = tables.constant("fragmentation_gib")
    start = free - weights - max(static, 0.0) - pool_table - graphs
    return Division(
        static_gib=static,
        pool_gib=pool,
        kv_tokens=tokens,
        max_running=running,
        start_gib=start,
        load_gib=start - work - fragmentation + known.headroom_shift(settings),
        need=f"weights {weights:.2f} GiB + KV pool out of {free:.2f} x {chosen.fraction:.4f} GiB",
        lines=(
            MemoryLine(name="request pool", gib=pool_table, note=f"{running} requests"),
            MemoryLine(name="CUDA graphs", gib=graphs, note=f"up to {chosen.graph_bs} requests"),
            MemoryLine(name="activations, MoE workspace", gib=work, note=f"chunk of {chosen.chunk} tokens"),
            MemoryLine(name="fragmentation", gib=fragmentation),
        ),
    )


def _graphs_sglang(settings: EngineSettings, chosen: Defaults, known: Calibration) -> float:
    """With those that verify drafts: a launch tells their size, before that the draft model's are counted."""
    if known.graphs_per_draft is None:
        return graphs_gib(chosen, draft=has_draft_model(settings))
    return graphs_gib(chosen) * (1 + known.graphs_per_draft * (settings.draft_tokens - 1))


def _divide_vllm(
    machine: Machine,
    model: ModelShape,
    settings: EngineSettings,
    chosen: Defaults,
    weights: float,
    known: Calibration,
) -> Division:
    """vLLM: a fraction of the card's total for everything; the pool is what its profiling run leaves."""
    total, running = machine.memory_mib / _MIB_PER_GIB, chosen.max_running or 256
    free = free_before_load_gib(machine, settings)
    context = total - machine.used_mib / _MIB_PER_GIB - free
    lines = (
        MemoryLine(name="CUDA graphs", gib=graphs_gib(chosen), note=f"up to {chosen.graph_bs} requests"),
        MemoryLine(name="activations, MoE workspace", gib=activation_gib(model, settings, chosen.chunk)),
        MemoryLine(name="sampler", gib=logits_gib(model, running), note=f"{running} requests"),
        MemoryLine(name="context, communicators", gib=context),
    )
    overhead = known.overhead_gib if known.overhead_gib is not None else sum(line.gib for line in lines)
    static = total * chosen.fraction - weights - overhead
    pool, tokens, limit = _pool(model, settings, chosen, static)
    start = free + context - total * chosen.fraction
    return Division(
        static_gib=static,
        pool_gib=pool,
        kv_tokens=tokens,
        max_running=min(running, limit),
        start_gib=start,
        load_gib=start - tables.constant("fragmentation_gib") + known.headroom_shift(settings),
        need=f"weights {weights:.2f} GiB + {overhead:.2f} GiB of {total:.2f} x {chosen.fraction:.4f} GiB",
        lines=lines,
    )


def _pool(
    model: ModelShape, settings: EngineSettings, chosen: Defaults, static: float
) -> tuple[float, int, int]:
    """KV pool in GiB, its tokens, and the requests that may run at once."""
    pool, state = max(static, 0.0), state_bytes_per_sequence(model, settings)
    state_slots = None
    if state:
        ratio = tables.constant("mamba_full_memory_ratio")
        state_slots = int(pool * ratio / (1 + ratio) * GIB / state)
        pool /= 1 + ratio
    tokens = pool_tokens(pool, kv_bytes_per_token(model, settings), chosen.page_size)
    if settings.max_pool_tokens:
        tokens = min(tokens, settings.max_pool_tokens)
    running = chosen.max_running or _request_slots(tokens, chosen)
    return pool, tokens, max(min(running, state_slots if state_slots is not None else running), 1)


def _request_slots(tokens: int, chosen: Defaults) -> int:
    """SGLang's request slots when the user names no limit."""
    return min(max(tokens * 512 // max(chosen.context_len, 1), 2048), 4096)
