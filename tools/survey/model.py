"""Pure parsers of what stands at the model's path."""

import json
import re
from typing import Any, Literal

from moeagent.memory.records import ModelFacts, Record
from moeagent.tools.survey.gguf_header import NotGguf, gguf_metadata

BYTES_PER_GIB = 1024**3
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.")

GGUF_TO_CONFIG = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_shared_count": "n_shared_experts",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.value_length": "v_head_dim",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
    "context_length": "max_position_embeddings",
    "leading_dense_block_count": "first_k_dense_replace",
    "vocab_size": "vocab_size",
}
"""GGUF architecture keys under the names of a config.json (ggml docs/gguf.md, transformers)."""


class ModelPlace(Record):
    """What stands at the path."""

    kind: Literal["directory", "file", "missing", "unknown"]
    facts: ModelFacts
    missing_files: tuple[str, ...] = ()
    """Files that the index names and the folder lacks."""
    complaint: str | None = None
    """Why the configuration or the header could not be read."""


def parse_model(
    path: str, kind: str, config: str, listing: str, index: str, head: bytes, quantisation: str = ""
) -> ModelPlace:
    """From the outputs of the model commands."""
    words = kind.split()
    if words[:1] == ["file"]:
        return _gguf(path, int(words[1]) if len(words) > 1 and words[1].isdigit() else 0, head)
    if words[:1] == ["directory"]:
        return _directory(path, config, quantisation, listing, index)
    known: Literal["missing", "unknown"] = "missing" if words[:1] == ["missing"] else "unknown"
    return ModelPlace(kind=known, facts=ModelFacts(path=path))


def parse_listing(text: str) -> dict[str, int]:
    """File names and bytes of `ls -lnL`."""
    rows = re.findall(r"^[-l]\S*\s+\d+\s+\d+\s+\d+\s+(\d+)\s.*?\s(?:\./)?([^/\s]+)$", text, re.MULTILINE)
    return {name: int(size) for size, name in rows}


def _directory(path: str, config: str, quantisation: str, listing: str, index: str) -> ModelPlace:
    files = parse_listing(listing)
    wanted = set(re.findall(r'"([^"]+\.safetensors)"', index))
    settings, complaint = _config(config)
    quantised, _ = _config(quantisation)
    if quantised and settings:
        settings["hf_quant_config"] = quantised
    size = sum(files.values())
    architectures = settings.get("architectures")
    facts = ModelFacts(
        path=path,
        architecture=str(architectures[0]) if isinstance(architectures, list) and architectures else None,
        config=settings,
        size_gib=round(size / BYTES_PER_GIB, 3) if size else None,
    )
    lacking = tuple(sorted(wanted - set(files)))
    return ModelPlace(kind="directory", facts=facts, missing_files=lacking, complaint=complaint)


def _config(text: str) -> tuple[dict[str, Any], str | None]:
    if not text.strip():
        return {}, "it has no config.json"
    try:
        settings = json.loads(text)
    except ValueError as error:
        return {}, f"its config.json is not valid JSON: {error}"
    return (settings, None) if isinstance(settings, dict) else ({}, "its config.json is no object")


def _gguf(path: str, size: int, head: bytes) -> ModelPlace:
    complaint, metadata = None, {}
    try:
        metadata = gguf_metadata(head)
    except NotGguf as error:
        complaint = f"it is not a GGUF file: {error}"
    architecture = metadata.get("general.architecture")
    prefix = f"{architecture}."
    own = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    config = {GGUF_TO_CONFIG.get(key, key): value for key, value in own.items()}
    config |= {key: metadata[key] for key in ("general.name", "general.file_type") if key in metadata}
    facts = ModelFacts(
        path=path,
        architecture=architecture,
        config=config,
        size_gib=round(size / BYTES_PER_GIB, 3) if size else None,
    )
    return ModelPlace(kind="file", facts=facts, complaint=complaint)


def is_later_split(path: str) -> bool:
    """True for a part of a split GGUF that is not the first; llama.cpp wants the first."""
    found = _SPLIT.search(path)
    return found is not None and int(found.group(1)) != 1
