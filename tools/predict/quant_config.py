"""Which weight formats a checkpoint uses, by its quantization_config or hf_quant_config.json."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any

from moeagent.tools.predict.records import WeightFormats

# One module of each part, as checkpoints name them; lists of exceptions are matched against these.
_PROBES = {
    "experts": ("model.layers.{i}.mlp.experts.0.gate_proj", "model.layers.{i}.mlp.experts"),
    "shared": (
        "model.layers.{i}.mlp.shared_experts.gate_proj",
        "model.layers.{i}.mlp.shared_expert.gate_proj",
    ),
    "attention": ("model.layers.{i}.self_attn.o_proj", "model.layers.{i}.linear_attn.out_proj"),
    "dense": ("model.layers.{i}.mlp.gate_proj", "model.layers.{i}.mlp.down_proj"),
}
_FOUR_BIT = ("nvfp4", "mxfp4", "int4")
_NAMED = (
    ("nvfp4", "nvfp4"),
    ("mxfp4", "mxfp4"),
    ("fp8", "fp8"),
    ("awq", "int4"),
    ("gptq", "int4"),
    ("int4", "int4"),
)


def weight_formats(
    config: Mapping[str, Any], text: Mapping[str, Any], name: str
) -> tuple[WeightFormats, tuple[str, ...]]:
    """Formats per part of the model, and what had to be assumed."""
    quant = _quant(config, text)
    if quant is None:
        named = next((fmt for key, fmt in _NAMED if key in name.lower()), None)
        if named is None:
            return WeightFormats(), ()
        note = f"config.json names no quantisation: by the model's name, experts {named}, the rest bf16"
        return WeightFormats(experts=named), (note,)
    base = format_of(quant)
    if base is None:
        method = quant.get("quant_method", quant.get("quant_algo", "?"))
        return WeightFormats(), (f"quantisation {method} is not known: weights taken for bf16",)
    ignored = _ignored(quant)
    if not ignored and base in _FOUR_BIT:
        note = (
            f"the {base} checkpoint lists no unquantised modules: attention and shared experts taken for bf16"
        )
        return WeightFormats(experts=base, dense=base), (note,)
    layer = int(text.get("first_k_dense_replace") or 0) + 3
    parts = {part: "bfloat16" if _excluded(part, layer, ignored) else base for part in _PROBES}
    return WeightFormats(**parts), ()


def lists_exceptions(config: Mapping[str, Any], text: Mapping[str, Any]) -> bool:
    """True when the checkpoint says which modules it left unquantised, or that it quantised none."""
    quant = _quant(config, text)
    return quant is not None and bool(_ignored(quant))


def format_of(quant: Mapping[str, Any]) -> str | None:
    """The name of the weight format in our table; None when it is not known."""
    method = str(quant.get("quant_method", "")).lower()
    algorithm = str(quant.get("quant_algo", "")).upper()
    if "NVFP4" in algorithm or "W4A16_NVFP4" in algorithm:
        return "nvfp4"
    if algorithm.startswith("FP8"):
        return "fp8"
    if method == "fp8":
        return "fp8_block" if quant.get("weight_block_size") else "fp8"
    if method in ("mxfp4", "quark_mxfp4"):
        return "mxfp4"
    if method in ("awq", "gptq", "awq_marlin", "gptq_marlin", "moe_wna16", "auto-round"):
        return "int8" if quant.get("bits") == 8 else "int4"
    return _compressed_tensors(quant)


def quant_method(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """The checkpoint's own word for its quantisation, by which engines check --quantization."""
    quant = _quant(config, text) or {}
    named = str(quant.get("quant_method") or "").lower()
    return named or ("modelopt" if "quant_algo" in quant else "")


def weight_block(config: Mapping[str, Any], text: Mapping[str, Any]) -> int:
    """Rows of a block that shares a scale, by weight_block_size; 0 where weights are not in blocks."""
    size = (_quant(config, text) or {}).get("weight_block_size")
    return int(size[0]) if isinstance(size, list) and size and isinstance(size[0], int) else 0


def kv_default(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    """What the KV dtype "auto" means: fp8 when the checkpoint says so, else bf16."""
    quant = _quant(config, text) or {}
    scheme = quant.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and scheme.get("num_bits") == 8:
        return "fp8"
    return "fp8" if str(quant.get("kv_cache_quant_algo", "")).upper() == "FP8" else "bfloat16"


def _quant(config: Mapping[str, Any], text: Mapping[str, Any]) -> Mapping[str, Any] | None:
    outer = config.get("hf_quant_config")
    if isinstance(outer, Mapping):
        inner = outer.get("quantization", outer)
        return inner if isinstance(inner, Mapping) else None
    for part in (config, text):
        found = part.get("quantization_config")
        if isinstance(found, Mapping):
            return found
    return None


def _compressed_tensors(quant: Mapping[str, Any]) -> str | None:
    groups = quant.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return None
    weights = next(iter(groups.values())).get("weights") or {}
    bits, kind, group = weights.get("num_bits"), weights.get("type"), weights.get("group_size")
    if bits == 4 and kind == "float":
        return "nvfp4" if group == 16 else "mxfp4"
    if bits == 4:
        return "int4"
    if bits == 8 and kind == "float":
        return "fp8_block" if weights.get("strategy") == "block" else "fp8"
    return "int8" if bits == 8 else None


def _ignored(quant: Mapping[str, Any]) -> Sequence[str]:
    for key in ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers"):
        found = quant.get(key)
        if isinstance(found, list):
            return [str(entry) for entry in found]
    return ()


def _excluded(part: str, layer: int, ignored: Sequence[str]) -> bool:
    probes = [probe.format(i=layer) for probe in _PROBES[part]]
    return any(_matches(pattern, probe) for pattern in ignored for probe in probes)


def _matches(pattern: str, module: str) -> bool:
    if pattern.startswith("re:"):
        return re.match(pattern[3:], module) is not None
    plain = pattern.replace("language_model.", "").removeprefix("model.")
    target = module.removeprefix("model.")
    if "*" in plain:
        return fnmatch.fnmatch(target, plain) or fnmatch.fnmatch(target, plain + ".*")
    return target == plain or target.startswith(plain + ".")
