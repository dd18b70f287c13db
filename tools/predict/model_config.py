"""From any model's config.json to its shape.

Fields decide, not class names: kv_lora_rank means MLA, index_topk means sparse attention, a list of layer
types means a hybrid. Class names matter only where tables/architectures.toml says that a field means
something else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from moeagent.memory.records import ModelFacts
from moeagent.tools.predict import tables
from moeagent.tools.predict.attention_config import attention_groups
from moeagent.tools.predict.parameters import formats_by_size
from moeagent.tools.predict.quant_config import (
    kv_default,
    lists_exceptions,
    quant_method,
    weight_block,
    weight_formats,
)
from moeagent.tools.predict.records import ModelShape, MoeShape, Unknown
from moeagent.tools.predict.tables.schema import ArchitectureRule

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_REQUIRED = ("num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads")
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_TOP_K = ("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "top_k_experts", "moe_k")
_SHARED_INTER = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
)
_MOE_STEP = ("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step")
_MTP = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")


def model_from_facts(facts: ModelFacts) -> ModelShape | Unknown:
    """The shape of a model read from a host, GGUF headers included. See model_from_config."""
    config = facts.config
    if facts.architecture and not config.get("architectures"):
        config = config | {"architectures": [facts.architecture]}
    shape = model_from_config(config, name=facts.path)
    if isinstance(shape, Unknown) or facts.size_gib is None:
        return shape
    if not lists_exceptions(config, text_config(config)):
        shape = formats_by_size(shape, facts.size_gib)
    return shape.model_copy(update={"file_gib": facts.size_gib})


def model_from_config(config: Mapping[str, Any], *, name: str = "model") -> ModelShape | Unknown:
    """The shape that a config.json describes, or what is missing.

    The text model of a multimodal config is used. Where the caller adds the content of hf_quant_config.json
    as `hf_quant_config`, that decides the weight formats.
    """
    text = text_config(config)
    classes = [str(c) for part in (config, text) for c in part.get("architectures") or ()]
    architecture = classes[0] if classes else str(text.get("model_type", "unknown"))
    refused = next((r for r in tables.architectures().refuse if r.applies(classes, text)), None)
    if refused is not None:
        return Unknown(what=f"the model {name} ({architecture})", why=refused.why)
    missing = [field for field in _REQUIRED if not isinstance(text.get(field), int)]
    if missing:
        return Unknown(
            what=f"the model {name} ({architecture})", why=f"config.json lacks {', '.join(missing)}"
        )
    try:
        return _shape(config, text, classes, architecture, name)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        why = f"its config.json does not fit any known layout ({type(error).__name__}: {error})"
        return Unknown(what=f"the model {name} ({architecture})", why=why)


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that describes the language model."""
    for key in _NESTED:
        inner = config.get(key)
        if isinstance(inner, Mapping):
            return text_config(inner)
    return config


def _shape(
    config: Mapping[str, Any],
    text: Mapping[str, Any],
    classes: Sequence[str],
    architecture: str,
    name: str,
) -> ModelShape:
    rule = _rule(classes)
    moe_layers, dense_layers = _mlp_layers(text)
    moe = _moe(text, rule, moe_layers) if moe_layers else None
    notes = () if set(classes) & set(tables.architectures().known) else (_unlisted(architecture),)
    formats, quant_notes = weight_formats(config, text, name)
    vision = config.get("vision_config")
    vision_layers, vision_hidden, vision_params = _vision(vision, text["hidden_size"])
    return ModelShape(
        name=name,
        architecture=architecture,
        layers=text["num_hidden_layers"],
        hidden=text["hidden_size"],
        vocab=text["vocab_size"],
        attention=attention_groups(text, gated=rule.attention_gate or bool(text.get("attn_output_gate"))),
        moe=moe,
        dense_layers=dense_layers,
        dense_inter=_dense_inter(text, rule) if dense_layers else 0,
        dense_matrices=rule.expert_matrices,
        tied_embeddings=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))),
        mtp_layers=int(_first(text, _MTP) or 0),
        vision_params=vision_params,
        vision_layers=vision_layers,
        vision_hidden=vision_hidden,
        max_context=int(text.get("max_position_embeddings") or 4096),
        formats=formats,
        quant_method=quant_method(config, text),
        weight_block=weight_block(config, text),
        kv_dtype=kv_default(config, text),
        notes=(*notes, *quant_notes),
    )


def _unlisted(architecture: str) -> str:
    return f"{architecture} is not in the table of architectures: predicted from its fields, less certain"


def _rule(classes: Sequence[str]) -> ArchitectureRule:
    rules = tables.architectures().rule
    return next((r for r in rules if set(r.match) & set(classes)), ArchitectureRule(match=()))


def _first(text: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((text[n] for n in names if text.get(n)), None)


def _mlp_layers(text: Mapping[str, Any]) -> tuple[int, int]:
    """Number of layers with routed experts, and with a dense MLP."""
    layers = text["num_hidden_layers"]
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern.count("E"), pattern.count("-")
    if not _first(text, _EXPERTS):
        return 0, layers
    frequency = next((text[n] for n in _MOE_STEP if n in text), 1)
    if isinstance(frequency, list):
        moe = sum(1 for flag in frequency[:layers] if flag)
        return moe, layers - moe
    first_dense = int(text.get("first_k_dense_replace") or 0)
    only_dense = set(text.get("mlp_only_layers") or ())
    step = int(frequency or 1)
    offset = step - 1 if "moe_layer_freq" not in text else 0
    moe = sum(1 for i in range(first_dense, layers) if i % step == offset and i not in only_dense)
    return moe, layers - moe


def _moe(text: Mapping[str, Any], rule: ArchitectureRule, layers: int) -> MoeShape:
    inter = text[rule.expert_inter_field] if rule.expert_inter_field else text["moe_intermediate_size"]
    shared = text.get(rule.shared_inter_field) if rule.shared_inter_field else _first(text, _SHARED_INTER)
    if not shared:
        count = text.get("n_shared_experts") or text.get("num_shared_experts") or 0
        shared = int(count) * inter
    return MoeShape(
        layers=layers,
        experts=_first(text, _EXPERTS),
        top_k=_first(text, _TOP_K),
        inter=inter,
        matrices=rule.expert_matrices,
        shared_inter=int(shared),
    )


def _dense_inter(text: Mapping[str, Any], rule: ArchitectureRule) -> int:
    field = rule.dense_inter_field or "intermediate_size"
    return int(text.get("dense_intermediate_size") or text[field])


def _vision(vision: Any, text_hidden: int) -> tuple[int, int, int]:
    """Layers, width and parameters of the vision tower; zeros without one."""
    if not isinstance(vision, Mapping):
        return 0, 0, 0
    layers = vision.get("vt_num_hidden_layers") or vision.get("depth") or vision.get("num_hidden_layers") or 0
    hidden = vision.get("vt_hidden_size") or vision.get("hidden_size") or 0
    inter = vision.get("vt_intermediate_size") or vision.get("intermediate_size") or 4 * hidden
    merged = 4 * hidden
    blocks = layers * (4 * hidden * hidden + 2 * hidden * inter)
    return int(layers), int(hidden), int(blocks + merged * merged + merged * text_hidden)
