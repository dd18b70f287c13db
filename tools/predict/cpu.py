"""A rough model of llama.cpp on CPU cores: wide intervals, right directions."""

from moeagent.memory.records import Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.calibration import Calibration, factor_at
from moeagent.tools.predict.interval import around
from moeagent.tools.predict.kernels import distinct_experts
from moeagent.tools.predict.kv import GIB, kv_bytes_per_token
from moeagent.tools.predict.parameters import bytes_per_param, count
from moeagent.tools.predict.records import (
    Limit,
    Machine,
    MemoryLine,
    MemoryTable,
    ModelShape,
    Prediction,
    RungPrediction,
)
from moeagent.tools.predict.settings import EngineSettings

_DEFAULT_SLOTS = 4
_WIDTH = 1.0
_CALIBRATED_WIDTH = 0.25
_COMPUTE_BUFFER_BYTES = 8


def predict_cpu(
    settings: EngineSettings,
    machine: Machine,
    model: ModelShape,
    workload: Workload,
    calibration: Calibration | None,
    notes: tuple[str, ...],
) -> Prediction:
    """Memory against RAM, and speed from the cores' share of a byte-and-FLOP roofline."""
    memory = _memory(settings, machine, model)
    problems = (f"does not fit: {memory.why}",) if memory.verdict == "does_not_fit" else ()
    short = _slot_context(settings, model)
    if short < workload.input_len + 1:
        problems = (*problems, f"each slot holds {short} tokens, the prompts have {workload.input_len}")
    if problems:
        return Prediction(memory=memory, problems=problems, notes=notes)
    known = calibration or Calibration()
    rungs = tuple(_rung(settings, machine, model, workload, known, c) for c in workload.ladder)
    source = "CPU: a rough roofline per core, see tables/constants.toml; intervals are a factor of two"
    return Prediction(memory=memory, rungs=rungs, notes=notes, sources=(source,))


def slots(settings: EngineSettings) -> int:
    """Requests that are decoded together; llama-server chooses four when it is not told."""
    return settings.slots if settings.slots and settings.slots > 0 else _DEFAULT_SLOTS


def _slot_context(settings: EngineSettings, model: ModelShape) -> int:
    total = settings.context_len or model.max_context
    return total // slots(settings) if settings.slots and settings.slots > 0 else total


def _rung(
    settings: EngineSettings,
    machine: Machine,
    model: ModelShape,
    workload: Workload,
    known: Calibration,
    concurrency: int,
) -> RungPrediction:
    running = min(concurrency, slots(settings))
    step = _forward_ms(settings, machine, model, running, workload.input_len + workload.output_len / 2)
    prompt = _prefill_ms(settings, machine, model, workload)
    stall = (running - 1) * prompt / workload.output_len
    tpot = step + stall
    service = prompt + workload.output_len * tpot
    queue = (concurrency - running) / running * service
    speed = factor_at(known.speed, concurrency)
    width = _WIDTH if speed is None else _CALIBRATED_WIDTH
    limit, why = _limit(settings, machine, running, concurrency, stall / tpot)
    return RungPrediction(
        concurrency=concurrency,
        running=running,
        output_tok_s=around(running * workload.output_len / service * 1e3 * (speed or 1.0), width),
        ttft_ms=around(prompt + queue, _WIDTH),
        tpot_ms=around(tpot / (speed or 1.0), width),
        limit=limit,
        why=why,
        terms_ms={"forward": step, "prefill of others": stall},
    )


def _limit(
    settings: EngineSettings, machine: Machine, running: int, concurrency: int, stall: float
) -> tuple[Limit, str]:
    if settings.threads and settings.threads > machine.cpu_cores:
        return "host cpu", f"{settings.threads} threads share {machine.cpu_cores} cores"
    if concurrency > running:
        return "batch cap", f"{running} slots for {concurrency} clients"
    if stall > 0.35:
        return "prefill interference", f"other requests' prompts take {stall:.0%} of each token's time"
    return "memory bandwidth" if running == 1 else "compute", f"{machine.cpu_cores} cores"


def _core_share(threads: int | None, cores: int) -> float:
    """Useful cores: fewer threads leave some idle, more threads than cores fight for them."""
    cores = max(cores, 1)
    used = threads or cores
    if used <= cores:
        return float(used)
    return cores * (1 - tables.constant("oversubscription_loss") * min((used - cores) / cores, 1.0))


def _forward_ms(
    settings: EngineSettings,
    machine: Machine,
    model: ModelShape,
    tokens: float,
    context: float,
    *,
    prompt: bool = False,
) -> float:
    threads = settings.batch_threads or settings.threads if prompt else settings.threads
    share = _core_share(threads, machine.cpu_cores)
    parts, moe = count(model), model.moe
    attention = parts.attention_sharded + parts.attention_replicated
    used = attention + parts.dense + parts.shared + parts.head
    read = used * bytes_per_param(model.formats.attention)
    work = used * tokens
    if moe is not None:
        read += (
            moe.layers
            * distinct_experts(moe.experts, moe.top_k, tokens)
            * parts.one_expert
            * bytes_per_param(model.formats.experts)
        )
        work += moe.layers * moe.top_k * parts.one_expert * tokens
    cache = 0.0 if prompt else tokens * context * kv_bytes_per_token(model, settings)
    bandwidth = min(share * tables.constant("cpu_core_gb_s"), tables.constant("cpu_socket_gb_s")) * 1e6
    rate = share * tables.constant("cpu_core_gflops") * 1e6
    layers = model.layers * tables.constant("cpu_layer_us") / 1e3
    return layers + (read + cache) / bandwidth + 2 * work / rate


def _prefill_ms(settings: EngineSettings, machine: Machine, model: ModelShape, workload: Workload) -> float:
    chunk = min(settings.chunk or 512, settings.batch or 2048)
    whole, rest = divmod(workload.input_len, chunk)
    sizes = [chunk] * whole + ([rest] if rest else [])
    return sum(
        _forward_ms(settings, machine, model, size, workload.input_len / 2, prompt=True) for size in sizes
    )


def _memory(settings: EngineSettings, machine: Machine, model: ModelShape) -> MemoryTable:
    parts = count(model)
    size = (model.file_gib or 0) * GIB
    if not size:
        size = parts.experts * bytes_per_param(model.formats.experts)
        size += (parts.total - parts.experts) * bytes_per_param(model.formats.attention)
    context = settings.context_len or model.max_context
    cell = kv_bytes_per_token(model, settings)
    buffer = (settings.chunk or 512) * (model.hidden + model.vocab) * _COMPUTE_BUFFER_BYTES
    lines = (
        MemoryLine(name="weights", gib=size / GIB),
        MemoryLine(name="KV cache", gib=context * cell / GIB, note=f"{context:,} tokens"),
        MemoryLine(name="compute buffers", gib=buffer / GIB),
    )
    total = machine.memory_mib / 1024
    room = total - sum(line.gib for line in lines)
    known = total > 0
    verdict = "does_not_fit" if known and room < 0 else "tight" if not known or room < 0.1 * total else "fits"
    return MemoryTable(
        lines=lines,
        total_gib=total,
        fraction=1.0,
        fraction_source="engine default",
        weights_gib=lines[0].gib,
        kv_bytes_per_token=cell,
        kv_pool_gib=lines[1].gib,
        kv_tokens=context,
        start_headroom_gib=room,
        load_headroom_gib=room,
        uncertainty_gib=0.1 * lines[0].gib,
        verdict=verdict,
        why=f"{room:.2f} GiB of {total:.1f} GiB RAM left" if known else "the machine's RAM is not known",
        max_running=slots(settings),
    )
