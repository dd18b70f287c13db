"""Time of a forward pass on CPU cores, by a roofline per core."""

from moeagent.memory.records import Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.cpu_memory import file_bytes_per_param
from moeagent.tools.predict.kernels import distinct_experts
from moeagent.tools.predict.kv import kv_bytes_per_token
from moeagent.tools.predict.parameters import count
from moeagent.tools.predict.records import Machine, ModelShape
from moeagent.tools.predict.settings import EngineSettings

_PER_MS = 1e6  # giga per second, in units per millisecond
_DEFAULT_CHUNK = 512
_DEFAULT_BATCH = 2048


def forward_ms(
    settings: EngineSettings, machine: Machine, model: ModelShape, tokens: float, context: float
) -> float:
    """One decode step of so many sequences."""
    share = _core_share(settings.threads, machine.cpu_cores)
    cache = tokens * context * kv_bytes_per_token(model, settings)
    return _pass_ms(model, share, tokens, cache) + tokens * tables.constant("cpu_token_us") / 1e3


def prefill_ms(settings: EngineSettings, machine: Machine, model: ModelShape, workload: Workload) -> float:
    """One prompt alone, in physical batches."""
    share = _core_share(settings.batch_threads or settings.threads, machine.cpu_cores)
    chunk = min(settings.chunk or _DEFAULT_CHUNK, settings.batch or _DEFAULT_BATCH)
    whole, rest = divmod(workload.input_len, chunk)
    sizes = [chunk] * whole + ([rest] if rest else [])
    return sum(_pass_ms(model, share, size, 0.0) for size in sizes)


def _pass_ms(model: ModelShape, share: float, tokens: float, cache_bytes: float) -> float:
    """Barriers of every layer, bytes at the cores' bandwidth, and products at their rate."""
    parts, moe, size = count(model), model.moe, file_bytes_per_param(model)
    always = parts.attention_sharded + parts.attention_replicated + parts.dense + parts.shared + parts.head
    touched, worked = float(always), float(always)
    if moe is not None:
        touched += moe.layers * distinct_experts(moe.experts, moe.top_k, tokens) * parts.one_expert
        worked += moe.layers * moe.top_k * parts.one_expert
    bandwidth = min(share * tables.constant("cpu_core_gb_s"), tables.constant("cpu_socket_gb_s"))
    read = (touched * size + cache_bytes) / (bandwidth * _PER_MS)
    work = 2 * worked * tokens / (share * tables.constant("cpu_core_gflops") * _PER_MS)
    fixed = tables.constant("cpu_step_us") + model.layers * tables.constant("cpu_layer_us")
    return fixed / 1e3 * (1.0 if share >= 1 else 1 / share) + read + work


def _core_share(threads: int | None, cores: int) -> float:
    """Useful cores: fewer threads leave some idle, more threads than cores fight for them."""
    cores = max(cores, 1)
    used = threads if threads and threads > 0 else cores
    if used <= cores:
        return float(used)
    return cores * (1 - tables.constant("oversubscription_loss") * min((used - cores) / cores, 1.0))
