"""Time of collectives in one forward pass."""

from moeagent.tools.predict import tables
from moeagent.tools.predict.batch import Batch, Setting
from moeagent.tools.predict.collectives import allreduce_us, gather_us
from moeagent.tools.predict.parameters import bytes_per_param

_BF16 = 2
_FP32 = 4
_FP8 = 1.0


def communication_us(at: Setting, batch: Batch) -> float:
    """All-reduces, or dispatch and combine where tokens travel to their experts; DCP and pipeline."""
    settings, model, moe = at.settings, at.model, at.model.moe
    size = batch.tokens * model.hidden * _BF16
    reduced, exchanged = model.dense_layers, 0
    if moe and (settings.has_a2a or settings.attention_dp > 1):
        exchanged = moe.layers
    elif moe:
        reduced += moe.layers
    time = model.layers * allreduce_us(at.fabric, size, settings.attention_tp)
    time += reduced * allreduce_us(at.fabric, size, settings.tp)
    time += exchanged * _exchange_us(at, batch) if exchanged else 0.0
    return time + _dcp_us(at, batch) + _pipeline_us(at, size)


def _exchange_us(at: Setting, batch: Batch) -> float:
    """Dispatch and combine of one MoE layer."""
    settings, moe, hidden = at.settings, at.model.moe, at.model.hidden
    assert moe is not None
    ranks = settings.expert_ranks
    everyone = batch.tokens * settings.attention_dp
    if not settings.has_a2a:
        return 2 * gather_us(at.fabric, everyone * hidden * _BF16, ranks)
    reached = ranks * (1 - (1 - 1 / ranks) ** moe.top_k)
    out = bytes_per_param("nvfp4") if at.model.formats.experts == "nvfp4" else _FP8
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
