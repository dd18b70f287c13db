"""Time of one forward pass, term by term."""

from moeagent.tools.predict import tables
from moeagent.tools.predict.attention_time import attention_us
from moeagent.tools.predict.batch import Batch, Setting
from moeagent.tools.predict.communication import communication_us
from moeagent.tools.predict.gemm_time import experts_us, head_us, mlp_us, projections_us

_BF16 = 2
_MEGA = 1e6


def forward_us(at: Setting, batch: Batch) -> dict[str, float]:
    """Microseconds of one forward, by term."""
    terms = {
        "projections": projections_us(at, batch),
        "attention": attention_us(at, batch),
        "experts": experts_us(at, batch),
        "mlp": mlp_us(at, batch),
        "communication": communication_us(at, batch),
        "small kernels": _small_kernels(at, batch),
        "head": head_us(at, batch),
    }
    floor = _launch_floor(at, batch) - sum(terms.values())
    terms["host"] = max(floor, 0.0) + tables.constant("step_us")
    return terms


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
    launched = kernels * tables.constant(f"small_kernel_us_{major}")
    return launched + model.layers * passes / _MEGA / at.bandwidth_mb_us


def _launch_floor(at: Setting, batch: Batch) -> float:
    """The host's launch rate: nothing for a captured step, dear for an eager one."""
    if batch.prefill:
        return at.model.layers * tables.constant("prefill_layer_us")
    if at.graph_bs >= batch.sequences:
        return 0.0
    return at.model.layers * tables.constant(f"eager_layer_us_{at.settings.engine}")
