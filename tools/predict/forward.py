"""Time of one forward pass, term by term."""

from moeagent.memory.records import Record
from moeagent.tools.predict import tables
from moeagent.tools.predict.collectives import allreduce_us, gather_us
from moeagent.tools.predict.kernels import gemm_us, moe_us
from moeagent.tools.predict.kv import group_bytes, kv_format
from moeagent.tools.predict.records import AttentionGroup, ModelShape
from moeagent.tools.predict.settings import EngineSettings
from moeagent.tools.predict.tables.schema import Fabric, GpuSpec
from moeagent.tools.predict.weights import formats_in_force

_BF16 = 2
_FP32 = 4
_MEGA = 1e6
_INDEX_HEADS = 32
_PCIE_CARD = "12"


class Setting(Record):
    """What every forward of one configuration shares."""

    spec: GpuSpec
    fabric: Fabric
    model: ModelShape
    settings: EngineSettings
    graph_bs: int

    @property
    def bandwidth_mb_us(self) -> float:
        """Memory bandwidth in MB per microsecond (which is TB/s)."""
        return self.spec.bandwidth_tb_s

    @property
    def sparse(self) -> bool:
        """True where sparse attention has kernels; SGLang falls back to dense MLA on SM120."""
        return not (self.spec.sm.startswith(_PCIE_CARD) and self.settings.engine == "sglang")


class Batch(Record):
    """One forward: sequences of one attention rank, new tokens of each, and the context they attend to."""

    sequences: float
    tokens_each: float
    context: float
    prefill: bool = False

    @property
    def tokens(self) -> float:
        """New tokens on one attention rank."""
        return self.sequences * self.tokens_each


def forward_us(at: Setting, batch: Batch) -> dict[str, float]:
    """Microseconds of one forward, by term."""
    terms = {
        "projections": _projections(at, batch),
        "attention": sum(_attention(at, g, batch) * g.layers for g in at.model.attention),
        "experts": _experts(at, batch),
        "mlp": _mlp(at, batch),
        "communication": _communication(at, batch),
        "small kernels": _small_kernels(at, batch),
        "head": _head(at, batch),
    }
    floor = _launch_floor(at, batch) - sum(terms.values())
    terms["host"] = max(floor, 0.0) + tables.constant("step_us")
    return terms


def _projections(at: Setting, batch: Batch) -> float:
    formats, tp = formats_in_force(at.model, at.settings), at.settings.attention_tp
    total = 0.0
    for group in at.model.attention:
        params = group.sharded_params / tp + group.replicated_params
        width = group.gemms * 1.5 * at.model.hidden
        total += group.layers * gemm_us(
            at.spec, formats.attention, params, batch.tokens, calls=group.gemms, width=width
        )
    return total


def _attention(at: Setting, group: AttentionGroup, batch: Batch) -> float:
    """One layer's attention core: reading the cache in decode, matrix products in prefill."""
    tp, kv = at.settings.attention_tp, tables.kv_formats()[kv_format(at.model, at.settings)].bytes
    if group.kind == "linear":
        rate = at.bandwidth_mb_us * tables.constant("linear_attention_efficiency")
        return 2 * batch.sequences * group.state_bytes / tp / _MEGA / rate
    seen = min(batch.context, group.window or batch.context)
    sparse = group.index_topk and at.sparse
    if sparse:
        seen = min(seen, group.index_topk)
    if batch.prefill:
        return _prefill_attention(at, group, batch, seen, tp, index=bool(sparse))
    size = group_bytes(group, kv, tp)
    if sparse:
        size -= group.index_dim
    read = batch.sequences * seen * size / at.settings.dcp
    if sparse:
        read += batch.sequences * batch.context * group.index_dim
    return read / _MEGA / (at.bandwidth_mb_us * tables.constant("attention_efficiency"))


def _prefill_attention(
    at: Setting, group: AttentionGroup, batch: Batch, seen: float, tp: int, *, index: bool
) -> float:
    heads, width = max(group.heads / tp, 1), group.head_dim + group.v_head_dim
    mean = seen / 2 if seen >= batch.context else seen
    efficiency = tables.constant("prefill_attention_efficiency") * _MEGA
    time = 0.0
    if index:
        # The sparse kernels work on the compressed cache, and pad the heads of a rank.
        heads, width = max(heads, tables.constant("sparse_heads")), 2 * group.kv_lora + group.rope_dim
        indexed = batch.tokens * batch.context / 2 * group.index_dim * 2 * _INDEX_HEADS
        time += indexed / (at.spec.tflops.get("fp8", at.spec.tflops["bfloat16"]) * efficiency)
    return time + batch.tokens * mean * heads * 2 * width / (at.spec.tflops["bfloat16"] * efficiency)


def _experts(at: Setting, batch: Batch) -> float:
    moe = at.model.moe
    if moe is None:
        return 0.0
    everyone = batch.tokens * at.settings.attention_dp
    formats = formats_in_force(at.model, at.settings)
    return moe.layers * moe_us(at.spec, at.model, at.settings, formats.experts, everyone)


def _mlp(at: Setting, batch: Batch) -> float:
    """Dense MLPs, shared experts and the router."""
    model, formats = at.model, formats_in_force(at.model, at.settings)
    hidden, moe, tp = model.hidden, model.moe, at.settings.expert_ranks
    total = 0.0
    if model.dense_layers:
        params = model.dense_matrices * hidden * model.dense_inter / at.settings.tp
        width = 2 * hidden + 3 * model.dense_inter / at.settings.tp
        total += model.dense_layers * gemm_us(
            at.spec, formats.dense, params, batch.tokens, calls=2, width=width
        )
    if moe is None:
        return total
    total += moe.layers * gemm_us(
        at.spec, "bfloat16", hidden * moe.experts, batch.tokens, calls=1, width=hidden + moe.experts
    )
    if moe.shared_inter:
        share = 1 if at.settings.has_a2a else tp
        params = moe.matrices * hidden * moe.shared_inter / share
        # Two streams hide the launches of the shared expert behind the routed ones.
        total += moe.layers * gemm_us(
            at.spec,
            formats.shared,
            params,
            batch.tokens,
            calls=0,
            width=2 * hidden + 3 * moe.shared_inter / share,
        )
    return total


def _communication(at: Setting, batch: Batch) -> float:
    """All-reduces, or dispatch and combine where tokens travel to their experts; DCP and pipeline."""
    settings, model, moe = at.settings, at.model, at.model.moe
    size = batch.tokens * model.hidden * _BF16
    moe_layers = moe.layers if moe else 0
    after_attention = model.layers * allreduce_us(at.fabric, size, settings.attention_tp)
    mlp_layers = moe_layers + model.dense_layers
    if moe and (settings.has_a2a or settings.attention_dp > 1):
        exchange = _exchange_us(at, batch) * moe_layers
        mlp_layers -= moe_layers
    else:
        exchange = 0.0
    after_mlp = mlp_layers * allreduce_us(at.fabric, size, settings.tp)
    return after_attention + exchange + after_mlp + _dcp_us(at, batch) + _pipeline_us(at, size)


def _exchange_us(at: Setting, batch: Batch) -> float:
    """Dispatch and combine of one MoE layer."""
    settings, moe, hidden = at.settings, at.model.moe, at.model.hidden
    assert moe is not None
    ranks = settings.expert_ranks
    everyone = batch.tokens * settings.attention_dp
    if not settings.has_a2a:
        return 2 * gather_us(at.fabric, everyone * hidden * _BF16, ranks)
    reached = ranks * (1 - (1 - 1 / ranks) ** moe.top_k)
    out = 0.5625 if at.model.formats.experts == "nvfp4" else 1.0
    sent = everyone / ranks * reached * hidden
    return gather_us(at.fabric, sent * out, ranks) + gather_us(at.fabric, sent * _BF16, ranks)


def _dcp_us(at: Setting, batch: Batch) -> float:
    """Decode context parallelism: gather the queries of all layers, merge the partial results.

    Decode reduces fp32 results, prefill reduce-scatters bf16 ones.
    """
    dcp = at.settings.dcp
    if dcp <= 1:
        return 0.0
    group = at.model.attention[0]
    rows = batch.tokens * group.heads / at.settings.attention_tp * dcp
    query = rows * (group.kv_lora + group.rope_dim or group.head_dim) * _BF16
    width = group.kv_lora or group.head_dim
    merge = gather_us(at.fabric, rows * width * _BF16, dcp)
    if not batch.prefill:
        merge = allreduce_us(at.fabric, rows * width * _FP32, dcp) + tables.constant("dcp_layer_us")
    return at.model.layers * (gather_us(at.fabric, query, dcp) + merge)


def _pipeline_us(at: Setting, size: float) -> float:
    return (at.settings.pp - 1) * gather_us(at.fabric, size, 2)


def _small_kernels(at: Setting, batch: Batch) -> float:
    """Norms, rotary, routing, quantisation, attention launches."""
    model, major = at.model, at.spec.sm.split(".")[0]
    passes = tables.constant("elementwise_passes") * batch.tokens * model.hidden * _BF16
    kernels = float(model.moe.layers) * tables.constant("small_kernels_moe") if model.moe else 0.0
    for group in model.attention:
        kind = "gqa" if group.kind == "window" else group.kind
        kernels += group.layers * tables.constant(f"small_kernels_{kind}")
        if group.index_topk and at.sparse:
            kernels += group.layers * tables.constant("small_kernels_dsa")
    return (
        kernels * tables.constant(f"small_kernel_us_{major}")
        + model.layers * passes / _MEGA / at.bandwidth_mb_us
    )


def _head(at: Setting, batch: Batch) -> float:
    tp, rows = at.settings.attention_tp, batch.sequences if batch.prefill else batch.tokens
    params = at.model.vocab * at.model.hidden / tp
    head = gemm_us(at.spec, "bfloat16", params, rows, calls=1, width=at.model.hidden + at.model.vocab / tp)
    return head + gather_us(at.fabric, rows * at.model.vocab * _BF16, tp)


def _launch_floor(at: Setting, batch: Batch) -> float:
    """The host's launch rate: nothing for a captured step, dear for an eager one."""
    if batch.prefill:
        return at.model.layers * tables.constant("prefill_layer_us")
    if at.graph_bs >= batch.sequences:
        return 0.0
    return at.model.layers * tables.constant(f"eager_layer_us_{at.settings.engine}")
