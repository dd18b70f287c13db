"""What the engines' rules may ask about a model (see tools/engines/data/couplings.toml)."""

from typing import Any

from moeagent.tools.predict.records import ModelShape, Unknown

_FAMILIES = {"fp8_block": "fp8"}


def rule_facts(model: ModelShape | Unknown) -> dict[str, Any]:
    """Facts by the names that rules use; none of an unknown model, and then no rule about models speaks."""
    if isinstance(model, Unknown):
        return {}
    formats = model.formats
    weights = formats.experts if model.moe is not None else formats.dense
    return {
        "model.architecture": model.architecture,
        "model.experts": model.moe.experts if model.moe is not None else 0,
        "model.weights": _FAMILIES.get(weights, weights),
        "model.quant_method": model.quant_method,
        "model.attention": "mla" if any(group.kind == "mla" for group in model.attention) else "mha",
        "model.cache": _cache(model),
    }


def _cache(model: ModelShape) -> str:
    """Which kind of pool holds its KV cache."""
    kinds = {group.kind for group in model.attention}
    if any(group.index_dim for group in model.attention):
        return "sparse"
    return "hybrid" if "linear" in kinds else "window" if "window" in kinds else "plain"
