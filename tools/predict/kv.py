"""KV cache: bytes per token, and how many tokens a pool holds."""

from moeagent.tools.predict import tables
from moeagent.tools.predict.records import AttentionGroup, ModelShape
from moeagent.tools.predict.settings import EngineSettings

GIB = 2**30
_INDEX_SCALE_BYTES = 4
_INDEX_BYTES = 1  # the DSA index is stored in fp8 with one fp32 scale per token
_VLLM_DSA_FP8_BYTES = 656  # 512 fp8 values, 4 fp32 scales, 64 bf16 rotary values


def kv_format(model: ModelShape, settings: EngineSettings) -> str:
    """The KV dtype in force; an unknown name counts as bf16."""
    wanted = settings.kv_dtype.lower()
    if wanted in ("auto", ""):
        return model.kv_dtype if settings.engine != "llamacpp" else "bfloat16"
    found = tables.kv_formats().get(wanted)
    return found.name if found else "bfloat16"


def element_bytes(model: ModelShape, settings: EngineSettings) -> float:
    """Bytes of one stored element; the mean of K and V where llama.cpp gives them different types."""
    size = tables.kv_formats()[kv_format(model, settings)].bytes
    other = tables.kv_formats().get((settings.kv_dtype_v or "").lower())
    return (size + other.bytes) / 2 if other else size


def group_bytes(group: AttentionGroup, kv_bytes: float, tp: int, *, vllm_fp8: bool = False) -> float:
    """Bytes of one token in one layer of the group on one GPU; 0 for recurrent layers."""
    if group.kind == "linear":
        return 0.0
    if group.kind == "mla":
        index = group.index_dim * _INDEX_BYTES + _INDEX_SCALE_BYTES if group.index_dim else 0
        if index and vllm_fp8:
            return _VLLM_DSA_FP8_BYTES + index
        return (group.kv_lora + group.rope_dim) * kv_bytes + index
    heads = max(group.kv_heads / tp, 1)
    return heads * (group.head_dim + group.v_head_dim) * kv_bytes


def kv_bytes_per_token(model: ModelShape, settings: EngineSettings) -> float:
    """Bytes of one token of full-attention cache on one GPU of one pipeline stage.

    Sliding-window layers count by the engine's ratio; recurrent layers hold a state per sequence instead. MLA
    is not divided by TP.
    """
    name, size = kv_format(model, settings), element_bytes(model, settings)
    vllm_fp8 = settings.engine == "vllm" and name == "fp8"
    per_layer = sum(
        group_bytes(g, size, settings.attention_tp, vllm_fp8=vllm_fp8) * g.layers * _share(g)
        for g in model.attention
    )
    if vllm_fp8 and settings.spec_algorithm and model.mtp_layers:
        last = next((g for g in model.attention if g.kind != "linear"), None)
        per_layer += group_bytes(last, size, settings.attention_tp, vllm_fp8=True) if last else 0
    return per_layer / settings.pp / settings.dcp


def _share(group: AttentionGroup) -> float:
    """Part of a token's cache that stays: SGLang sizes the sliding layers' pool to 0.8 of the full one."""
    return tables.constant("swa_full_tokens_ratio") if group.kind == "window" else 1.0


def state_bytes_per_sequence(model: ModelShape, settings: EngineSettings) -> float:
    """Recurrent state of one sequence on one GPU."""
    return sum(g.layers * g.state_bytes for g in model.attention) / settings.attention_tp / settings.pp


def pool_tokens(pool_gib: float, cell_bytes: float, page_size: int) -> int:
    """Tokens of a pool, rounded down to whole pages; 0 when nothing is left for it."""
    if pool_gib <= 0 or cell_bytes <= 0:
        return 0
    return int(pool_gib * GIB // cell_bytes) // page_size * page_size
