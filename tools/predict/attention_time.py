"""Time of the attention core: reading the cache in decode, matrix products in prefill."""

from moeagent.tools.predict import tables
from moeagent.tools.predict.batch import Batch, Setting
from moeagent.tools.predict.kv import element_bytes, group_bytes
from moeagent.tools.predict.records import AttentionGroup

_MEGA = 1e6


def attention_us(at: Setting, batch: Batch) -> float:
    """All layers of one forward, microseconds."""
    return sum(_layer_us(at, group, batch) * group.layers for group in at.model.attention)


def _layer_us(at: Setting, group: AttentionGroup, batch: Batch) -> float:
    if group.kind == "linear":
        return _state_us(at, group, batch)
    seen = min(batch.context, group.window or batch.context)
    sparse = bool(group.index_topk) and at.sparse
    if sparse:
        seen = min(seen, group.index_topk)
    if batch.prefill:
        return _prefill_us(at, group, batch, seen, sparse=sparse)
    return _decode_us(at, group, batch, seen, sparse=sparse)


def _state_us(at: Setting, group: AttentionGroup, batch: Batch) -> float:
    """Recurrent states are read and written once per sequence."""
    rate = at.bandwidth_mb_us * tables.constant("linear_attention_efficiency")
    return 2 * batch.sequences * group.state_bytes / at.settings.attention_tp / _MEGA / rate


def _decode_us(at: Setting, group: AttentionGroup, batch: Batch, seen: float, *, sparse: bool) -> float:
    size = group_bytes(group, element_bytes(at.model, at.settings), at.settings.attention_tp)
    read = batch.sequences * seen * size
    if sparse:
        read += batch.sequences * (batch.context - seen) * group.index_dim
    rate = at.bandwidth_mb_us * tables.constant("attention_efficiency")
    return read / at.settings.dcp / _MEGA / rate


def _prefill_us(at: Setting, group: AttentionGroup, batch: Batch, seen: float, *, sparse: bool) -> float:
    """Dense kernels compute on their heads; sparse ones on the compressed cache and on padded heads."""
    efficiency = tables.constant("prefill_attention_efficiency") * _MEGA
    dense, narrow = at.spec.tflops["bfloat16"], at.spec.tflops.get("fp8", at.spec.tflops["bfloat16"])
    heads, width = max(group.heads / at.settings.attention_tp, 1), group.head_dim + group.v_head_dim
    if not sparse:
        return batch.tokens * seen * heads * 2 * width / (dense * efficiency)
    heads, width = max(heads, tables.constant("sparse_heads")), 2 * group.kv_lora + group.rope_dim
    attended = batch.tokens * seen * heads * 2 * width / (dense * efficiency)
    indexed = batch.tokens * batch.context * group.index_dim * 2 * group.index_heads
    return attended + indexed / (narrow * efficiency)
