"""The flags of our llama-server look-alike: llama-server's own names, and the parameter that each sets.

As in llama.cpp: no abbreviations, the last value wins, unknown arguments and bad values end the start.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
AUTO_SLOTS = 4
"""What llama-server makes of `--parallel -1`, together with a unified KV buffer (tools/server/server.cpp)."""


class BadArgument(Exception):  # noqa: N818 - it becomes llama.cpp's own error line
    """The text is the line that llama-server prints."""


@dataclass(frozen=True)
class Option:
    """One flag under all its names."""

    names: tuple[str, ...]
    target: str
    """Attribute of xllamacpp.CommonParams, dotted; empty for flags that main() handles."""
    text: str
    value: str | None = None
    """Placeholder of the value; None for a flag without one."""
    convert: Callable[[str], Any] = int
    constant: Any = True
    """What a flag without a value sets."""


def _choice(*values: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in values:
            raise ValueError(f"unknown value: {text}")
        return text

    return convert


def _cache_type(text: str) -> str:
    if text not in KV_TYPES:
        raise ValueError(f"Unsupported cache type: {text}")
    return text


def _layers(text: str) -> int:
    return {"auto": -1, "all": -2}.get(text) or int(text)


def _on(text: str) -> bool:
    return _choice("on", "off")(text) == "on"


_ALLOWED = f"allowed values: {', '.join(KV_TYPES)} (default: f16)"
_LOAD_MODES = ("auto", "none", "mmap", "mlock", "mmap+mlock", "dio")

OPTIONS: tuple[Option, ...] = (
    Option(("-h", "--help", "--usage"), "", "print usage and exit"),
    Option(("--version",), "", "show version and build info"),
    Option(("-m", "--model"), "model.path", "model path to load", "FNAME", str),
    Option(("--host",), "hostnames", "ip address to listen on (default: 127.0.0.1)", "HOST", lambda t: [t]),
    Option(("--port",), "port", "port to listen (default: 8080)", "PORT"),
    Option(
        ("-a", "--alias"), "model_alias", "set model name alias (to be used by API)", "STRING", lambda t: {t}
    ),
    Option(("-t", "--threads"), "cpuparams.n_threads", "CPU threads during generation (default: -1)", "N"),
    Option(
        ("-tb", "--threads-batch"),
        "cpuparams_batch.n_threads",
        "CPU threads during prompt processing (default: same as --threads)",
        "N",
    ),
    Option(("--threads-http",), "n_threads_http", "threads that process HTTP requests (default: -1)", "N"),
    Option(("--poll",), "cpuparams.poll", "polling level to wait for work (default: 50)", "<0...100>"),
    Option(
        ("-c", "--ctx-size"), "n_ctx", "size of the prompt context (default: 0, 0 = loaded from model)", "N"
    ),
    Option(("-n", "--predict", "--n-predict"), "n_predict", "number of tokens to predict (default: -1)", "N"),
    Option(("-b", "--batch-size"), "n_batch", "logical maximum batch size (default: 2048)", "N"),
    Option(("-ub", "--ubatch-size"), "n_ubatch", "physical maximum batch size (default: 512)", "N"),
    Option(("-np", "--parallel"), "n_parallel", "number of server slots (default: -1, -1 = auto)", "N"),
    Option(("-cb", "--cont-batching"), "cont_batching", "enable continuous batching (default: enabled)"),
    Option(("-nocb", "--no-cont-batching"), "cont_batching", "disable continuous batching", constant=False),
    Option(("-kvu", "--kv-unified"), "kv_unified", "one KV buffer shared across all sequences"),
    Option(("-no-kvu", "--no-kv-unified"), "kv_unified", "one KV buffer for each sequence", constant=False),
    Option(
        ("-fa", "--flash-attn"),
        "flash_attn_type",
        "set Flash Attention use (default: 'auto')",
        "[on|off|auto]",
        _choice("on", "off", "auto"),
    ),
    Option(
        ("-ctk", "--cache-type-k"),
        "cache_type_k",
        f"KV cache data type for K; {_ALLOWED}",
        "TYPE",
        _cache_type,
    ),
    Option(
        ("-ctv", "--cache-type-v"),
        "cache_type_v",
        f"KV cache data type for V; {_ALLOWED}",
        "TYPE",
        _cache_type,
    ),
    Option(("-nkvo", "--no-kv-offload"), "no_kv_offload", "keep the KV cache in host memory"),
    Option(("-cram", "--cache-ram"), "cache_ram_mib", "maximum prompt cache in MiB (default: 8192)", "N"),
    Option(("--cache-prompt",), "cache_prompt", "enable prompt caching (default: enabled)"),
    Option(("--no-cache-prompt",), "cache_prompt", "disable prompt caching", constant=False),
    Option(("--cache-reuse",), "n_cache_reuse", "min chunk size to reuse from the cache (default: 0)", "N"),
    Option(
        ("-ngl", "--gpu-layers", "--n-gpu-layers"),
        "n_gpu_layers",
        "layers to store in VRAM, a number, 'auto' or 'all' (default: auto)",
        "N",
        _layers,
    ),
    Option(
        ("-lm", "--load-mode"),
        "load_mode",
        "model loading mode (default: auto)",
        f"[{'|'.join(_LOAD_MODES)}]",
        _choice(*_LOAD_MODES),
    ),
    Option(("--repack",), "no_extra_bufts", "enable weight repacking (default: enabled)", constant=False),
    Option(("-nr", "--no-repack"), "no_extra_bufts", "disable weight repacking"),
    Option(("--no-host",), "no_host", "bypass host buffer allowing extra buffers to be used"),
    Option(
        ("-fit", "--fit"), "fit_params", "adjust unset arguments to memory (default: 'on')", "[on|off]", _on
    ),
    Option(("--swa-full",), "swa_full", "use full-size SWA cache"),
    Option(("--warmup",), "warmup", "warm up with an empty run (default: enabled)"),
    Option(("--no-warmup",), "warmup", "skip the warm-up", constant=False),
    Option(("--metrics",), "endpoint_metrics", "enable prometheus compatible metrics endpoint"),
    Option(("--slots",), "endpoint_slots", "expose slots monitoring endpoint (default: enabled)"),
    Option(("--no-slots",), "endpoint_slots", "hide slots monitoring endpoint", constant=False),
    Option(("-to", "--timeout"), "timeout_read", "server read timeout in seconds (default: 3600)", "N"),
    Option(("-lv", "--verbosity"), "verbosity", "verbosity threshold (default: 3)", "N"),
)


def parse(arguments: list[str]) -> dict[str, Any]:
    """Target to value, in llama.cpp's manner; `help` and `version` are targets of their own.

    Raises BadArgument with llama.cpp's own words.
    """
    by_name = {name: option for option in OPTIONS for name in option.names}
    found: dict[str, Any] = {}
    words = iter(arguments)
    for word in words:
        option = by_name.get(word)
        if option is None:
            raise BadArgument(f"error: invalid argument: {word}")
        target = option.target or option.names[-1 if len(option.names) == 1 else 1].lstrip("-")
        found[target] = option.constant if option.value is None else _value(option, word, next(words, None))
    return found


def help_text() -> str:
    """Usage in llama-server's layout: names and value in the first 40 columns, help behind."""
    lines = ["----- common params -----", ""]
    for option in OPTIONS:
        short = [name for name in option.names if not name.startswith("--")]
        long = [name for name in option.names if name.startswith("--")]
        head = "".join(f"{name + ',':<7}" for name in short) + ", ".join(long)
        head += f" {option.value}" if option.value else ""
        lines += [f"{head:<40}{option.text}"] if len(head) < 40 else [head, " " * 40 + option.text]
    return "\n".join(lines) + "\n"


def _value(option: Option, word: str, text: str | None) -> Any:
    if text is None:
        raise BadArgument(f'error while handling argument "{word}": expected value for argument')
    try:
        return option.convert(text)
    except ValueError as error:
        reason = "stoi" if option.convert in (int, _layers) else str(error)
        raise BadArgument(f'error while handling argument "{word}": {reason}') from error
