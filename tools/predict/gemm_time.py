"""Time of everything that multiplies by weights."""

from moeagent.tools.predict.batch import Batch, Setting
from moeagent.tools.predict.collectives import gather_us
from moeagent.tools.predict.kernels import gemm_us, moe_us, ridge_rows
from moeagent.tools.predict.weights import formats_in_force

_BF16 = 2


def projections_us(at: Setting, batch: Batch) -> float:
    """Attention projections of all layers."""
    formats, tp = formats_in_force(at.model, at.settings), at.settings.attention_tp
    total = 0.0
    for group in at.model.attention:
        params = group.sharded_params / tp + group.replicated_params
        width = group.gemms * 1.5 * at.model.hidden
        total += group.layers * gemm_us(
            at.spec, formats.attention, params, batch.tokens, calls=group.gemms, width=width
        )
    return total


def experts_us(at: Setting, batch: Batch) -> float:
    """Routed experts of all layers, for the tokens of all attention ranks."""
    moe = at.model.moe
    if moe is None:
        return 0.0
    everyone = batch.tokens * at.settings.attention_dp
    formats = formats_in_force(at.model, at.settings)
    return moe.layers * moe_us(at.spec, at.model, at.settings, formats.experts, everyone)


def mlp_us(at: Setting, batch: Batch) -> float:
    """Dense MLPs, shared experts and the router."""
    return _dense_us(at, batch) + _beside_experts_us(at, batch)


def _dense_us(at: Setting, batch: Batch) -> float:
    model = at.model
    inter = model.dense_inter / at.settings.tp
    params = model.dense_matrices * model.hidden * inter
    width = 2 * model.hidden + 3 * inter
    kind = formats_in_force(model, at.settings).dense
    if not model.dense_layers:
        return 0.0
    return model.dense_layers * gemm_us(at.spec, kind, params, batch.tokens, calls=2, width=width)


def _beside_experts_us(at: Setting, batch: Batch) -> float:
    """Router and shared experts. Two streams hide the launches of the shared ones behind the routed ones."""
    hidden, moe = at.model.hidden, at.model.moe
    if moe is None:
        return 0.0
    router = hidden * moe.experts
    time = gemm_us(at.spec, "bfloat16", router, batch.tokens, calls=1, width=hidden + moe.experts)
    if moe.shared_inter:
        inter = moe.shared_inter / (1 if at.settings.has_a2a else at.settings.expert_ranks)
        kind = formats_in_force(at.model, at.settings).shared
        params = moe.matrices * hidden * inter
        time += gemm_us(at.spec, kind, params, batch.tokens, calls=0, width=2 * hidden + 3 * inter)
    return moe.layers * time


def head_us(at: Setting, batch: Batch) -> float:
    """Output head and the gathering of its logits."""
    tp, rows = at.settings.attention_tp, batch.sequences if batch.prefill else batch.tokens
    params = at.model.vocab * at.model.hidden / tp
    head = gemm_us(at.spec, "bfloat16", params, rows, calls=1, width=at.model.hidden + at.model.vocab / tp)
    return head + gather_us(at.fabric, rows * at.model.vocab * _BF16, tp)


def compute_bound(at: Setting, running: float) -> bool:
    """True when the largest GEMMs of a decode step have more rows than the ridge point."""
    moe, formats = at.model.moe, formats_in_force(at.model, at.settings)
    rows, kind = running * at.settings.draft_tokens, formats.dense
    if moe is not None:
        rows, kind = rows * moe.top_k / moe.experts, formats.experts
    return rows > ridge_rows(at.spec, kind)
