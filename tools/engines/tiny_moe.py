"""Writes a tiny random-weight Qwen3-MoE as GGUF: `python -m moeagent.tools.engines.tiny_moe OUT.gguf`.

A real model file for a real llama.cpp server, in a second and without a download: about 14 million
parameters, 16 experts of which 4 are active. What it says is noise; how it loads and fails is real.
Needs the extra `local` (gguf, which brings numpy).
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moeagent.memory.errors import InputError

WORDS = (
    "the of and to in is that it for on with as was at by this from or are not have one all were when there "
    "model token server expert layer batch cache request latency memory queue prompt answer number value time"
)
"""Common words become tokens, so that a prompt is shorter than its bytes."""
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True)
class TinyMoe:
    """Shape of the model; equal shapes and seeds give equal files."""

    layers: int = 4
    hidden: int = 256
    experts: int = 16
    experts_used: int = 4
    expert_width: int = 256
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 64
    context: int = 4096
    seed: int = 0


@dataclass(frozen=True)
class Vocabulary:
    """A byte-level BPE vocabulary; the special tokens come last, before padding."""

    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    first_special: int


def write_tiny_moe(path: Path, shape: TinyMoe | None = None) -> Path:
    """Writes the model and returns its path. Raises InputError when the extra `local` is not installed."""
    try:
        import gguf
    except ImportError as error:
        raise InputError(
            "A tiny model is written with the gguf package: pip install 'moeagent[local]'"
        ) from error
    shape = shape or TinyMoe()
    vocabulary = build_vocabulary()
    partial = path.with_name(path.name + ".partial")
    writer = gguf.GGUFWriter(partial, "qwen3moe")
    _write_header(writer, shape, len(vocabulary.tokens))
    _write_tokenizer(writer, vocabulary, gguf.TokenType)
    _write_tensors(writer, shape, vocabulary)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return partial.replace(path)


def build_vocabulary() -> Vocabulary:
    """All bytes, the words with their merges, the special tokens, padding to a multiple of 64."""
    letters = _byte_letters()
    tokens = [letters[byte] for byte in range(256)]
    merges: list[str] = []
    for word in WORDS.split():
        spelled = [letters[byte] for byte in f" {word}".encode()]
        for length in range(1, len(spelled)):
            left, right = "".join(spelled[:length]), spelled[length]
            if left + right not in tokens:
                merges.append(f"{left} {right}")
                tokens.append(left + right)
    first_special = len(tokens)
    tokens += SPECIAL
    tokens += [f"<|unused{n}|>" for n in range(-len(tokens) % 64)]
    return Vocabulary(tuple(tokens), tuple(merges), first_special)


def _byte_letters() -> dict[int, str]:
    """The printable stand-in of each byte in byte-level BPE (as in the GPT-2 encoder)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + n) for n, b in enumerate(others)}


def _write_header(writer: Any, shape: TinyMoe, vocab: int) -> None:
    writer.add_name(f"tiny-moe-{shape.experts}e{shape.experts_used}")
    writer.add_file_type(1)  # mostly F16
    writer.add_vocab_size(vocab)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(4 * shape.expert_width)
    writer.add_expert_feed_forward_length(shape.expert_width)
    writer.add_expert_count(shape.experts)
    writer.add_expert_used_count(shape.experts_used)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_freq_base(1e6)
    writer.add_layer_norm_rms_eps(1e-6)


def _write_tokenizer(writer: Any, vocabulary: Vocabulary, kind: Any) -> None:
    special, first = len(SPECIAL), vocabulary.first_special
    unused = len(vocabulary.tokens) - first - special
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_types([kind.NORMAL] * first + [kind.CONTROL] * special + [kind.UNUSED] * unused)
    writer.add_token_merges(list(vocabulary.merges))
    writer.add_bos_token_id(first)
    writer.add_eos_token_id(first + 2)
    writer.add_pad_token_id(first)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def _write_tensors(writer: Any, shape: TinyMoe, vocabulary: Vocabulary) -> None:
    """Random weights; tokens without readable text get no logit, so that every answer has text to count."""
    import numpy as np

    rng = np.random.default_rng(shape.seed)
    mute = [n for n in range(256) if not 32 <= n < 127]
    mute += range(vocabulary.first_special, len(vocabulary.tokens))
    for name, dims, half in _tensors(shape, len(vocabulary.tokens)):
        if len(dims) == 1:
            values = np.ones(dims, dtype="float32")
        else:
            values = rng.standard_normal(dims, dtype="float32") / dims[-1] ** 0.5
        if name == "output.weight":
            values[mute] = 0.0
        writer.add_tensor(name, values.astype("float16" if half else "float32"))


def _tensors(shape: TinyMoe, vocab: int) -> list[tuple[str, tuple[int, ...], bool]]:
    """Name, shape and whether half precision; norms and the router stay in F32, as llama.cpp expects."""
    h, w, e = shape.hidden, shape.expert_width, shape.experts
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    found: list[tuple[str, tuple[int, ...], bool]] = [
        ("token_embd.weight", (vocab, h), True),
        ("output.weight", (vocab, h), True),
        ("output_norm.weight", (h,), False),
    ]
    per_layer: tuple[tuple[str, tuple[int, ...], bool], ...] = (
        ("attn_norm", (h,), False),
        ("ffn_norm", (h,), False),
        ("attn_q", (q, h), True),
        ("attn_k", (kv, h), True),
        ("attn_v", (kv, h), True),
        ("attn_output", (h, q), True),
        ("attn_q_norm", (shape.head_dim,), False),
        ("attn_k_norm", (shape.head_dim,), False),
        ("ffn_gate_inp", (e, h), False),
        ("ffn_gate_exps", (e, w, h), True),
        ("ffn_up_exps", (e, w, h), True),
        ("ffn_down_exps", (e, h, w), True),
    )
    for layer in range(shape.layers):
        found += [(f"blk.{layer}.{name}.weight", dims, half) for name, dims, half in per_layer]
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Write a tiny random-weight Qwen3-MoE GGUF")
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=TinyMoe.layers)
    parser.add_argument("--experts", type=int, default=TinyMoe.experts)
    parser.add_argument("--context", type=int, default=TinyMoe.context)
    parser.add_argument("--seed", type=int, default=TinyMoe.seed)
    chosen = parser.parse_args()
    shape = TinyMoe(layers=chosen.layers, experts=chosen.experts, context=chosen.context, seed=chosen.seed)
    print(write_tiny_moe(chosen.out, shape))


if __name__ == "__main__":
    main()
