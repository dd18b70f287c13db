"""Which kinds of attention a config.json describes, with their parameters per layer."""

from collections.abc import Mapping
from typing import Any

from moeagent.tools.predict.records import AttentionGroup

_STATE_BYTES = 4  # recurrent states are kept in fp32


def attention_groups(text: Mapping[str, Any], *, gated: bool = False) -> tuple[AttentionGroup, ...]:
    """Groups of layers by attention kind. Raises KeyError when a needed field is missing."""
    counts = _layer_kinds(text)
    groups = []
    for kind, layers in counts.items():
        if kind == "full":
            groups.append(_full(text, layers, gated))
        elif kind == "window":
            groups.append(_window(text, layers))
        elif kind == "linear" and layers:
            groups.append(_linear(text, layers))
    return tuple(g for g in groups if g.layers)


def _layer_kinds(text: Mapping[str, Any]) -> dict[str, int]:
    """Layers per kind: full, window (sliding), linear (GDN, KDA, Mamba)."""
    layers = text["num_hidden_layers"]
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return {"full": pattern.count("*"), "linear": pattern.count("M")}
    types = text.get("layer_types")
    if isinstance(types, list):
        sliding = sum("sliding" in t or "chunked" in t for t in types)
        linear = sum("linear" in t or "mamba" in t for t in types)
        return {"full": len(types) - sliding - linear, "window": sliding, "linear": linear}
    hybrid = text.get("hybrid_layer_pattern")
    if isinstance(hybrid, list):
        return {"full": hybrid[:layers].count(0), "window": layers - hybrid[:layers].count(0)}
    if text.get("full_attention_interval") and "linear_num_value_heads" in text:
        full = layers // int(text["full_attention_interval"])
        return {"full": full, "linear": layers - full}
    if text.get("sliding_window") and text.get("use_sliding_window", True):
        return {"window": layers}
    return {"full": layers}


def _full(text: Mapping[str, Any], layers: int, gated: bool) -> AttentionGroup:
    if text.get("kv_lora_rank"):
        return _mla(text, layers)
    kv_heads = text.get("num_global_key_value_heads") or text.get("num_key_value_heads")
    head_dim = text.get("global_head_dim") or text.get("head_dim")
    return _gqa(text, layers, kv_heads=kv_heads, head_dim=head_dim, gated=gated)


def _gqa(
    text: Mapping[str, Any],
    layers: int,
    *,
    kv_heads: int | None,
    head_dim: int | None,
    v_head_dim: int | None = None,
    gated: bool = False,
    window: int = 0,
) -> AttentionGroup:
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    kv_heads = kv_heads or heads
    dim = head_dim or hidden // heads
    v_dim = v_head_dim or text.get("v_head_dim") or dim
    query = hidden * heads * dim * (2 if gated else 1)
    params = query + hidden * kv_heads * (dim + v_dim) + heads * v_dim * hidden
    return AttentionGroup(
        kind="window" if window else "gqa",
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=dim,
        v_head_dim=v_dim,
        window=window,
        sharded_params=params,
    )


def _window(text: Mapping[str, Any], layers: int) -> AttentionGroup:
    return _gqa(
        text,
        layers,
        kv_heads=text.get("swa_num_key_value_heads") or text.get("num_key_value_heads"),
        head_dim=text.get("swa_head_dim") or text.get("head_dim"),
        v_head_dim=text.get("swa_v_head_dim"),
        window=int(text.get("sliding_window") or text.get("attention_chunk_size") or 4096),
    )


def _mla(text: Mapping[str, Any], layers: int) -> AttentionGroup:
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    lora, rope, nope = text["kv_lora_rank"], text["qk_rope_head_dim"], text["qk_nope_head_dim"]
    v_dim, q_lora = text["v_head_dim"], int(text.get("q_lora_rank") or 0)
    index_heads, index_dim = int(text.get("index_n_heads") or 0), int(text.get("index_head_dim") or 0)
    up = lora * heads * (nope + v_dim)
    replicated = hidden * (lora + rope) + hidden * q_lora
    replicated += (q_lora or hidden) * index_heads * index_dim + hidden * (index_dim + index_heads)
    sharded = (q_lora or hidden) * heads * (nope + rope) + up + heads * v_dim * hidden
    return AttentionGroup(
        kind="mla",
        layers=layers,
        heads=heads,
        kv_heads=1,
        head_dim=nope + rope,
        v_head_dim=v_dim,
        kv_lora=lora,
        rope_dim=rope,
        index_dim=index_dim,
        index_heads=index_heads,
        index_topk=int(text.get("index_topk") or 0),
        sharded_params=sharded,
        replicated_params=replicated,
        absorbed_params=up,
        gemms=6 if index_dim else 4,
    )


def _linear(text: Mapping[str, Any], layers: int) -> AttentionGroup:
    """Gated delta net (linear_* fields) or Mamba 2 (mamba_* and ssm_state_size fields)."""
    hidden = text["hidden_size"]
    if "mamba_num_heads" in text:
        heads, inner = text["mamba_num_heads"], text["mamba_num_heads"] * text["mamba_head_dim"]
        groups, state = int(text.get("n_groups") or 1), text["ssm_state_size"]
        conv = (inner + 2 * groups * state) * int(text.get("conv_kernel") or 4)
        params = hidden * (2 * inner + 2 * groups * state + heads) + inner * hidden + conv
        state_elements = inner * state
    else:
        heads = text["linear_num_value_heads"]
        key = text["linear_num_key_heads"] * text["linear_key_head_dim"]
        value = heads * text["linear_value_head_dim"]
        conv = (2 * key + value) * int(text.get("linear_conv_kernel_dim") or 4)
        params = hidden * (2 * key + 2 * value + 2 * heads) + value * hidden + conv
        state_elements = value * text["linear_key_head_dim"]
    return AttentionGroup(
        kind="linear",
        layers=layers,
        heads=heads,
        sharded_params=params,
        state_bytes=state_elements * _STATE_BYTES + conv * 2,
        gemms=3,
    )
