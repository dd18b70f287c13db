"""Requested against effective: what a server was asked for, and what it says is in force."""

from collections.abc import Mapping, Sequence
from typing import Any

from moeagent.memory.records import EngineFacts, Record, ServerConfig, fingerprint
from moeagent.tools.engines.catalogue import catalogue
from moeagent.tools.engines.protocol import Engine

VOLATILE = frozenset({
    "--port", "--host", "--model", "--model-path", "--model-tag", "--served-model-name", "--tokenizer",
    "--tokenizer-path", "--random-seed", "--nccl-port", "--dist-init-addr", "--log-level",
    "--uvicorn-log-level",
})  # fmt: skip
"""Settings that differ between two launches of one configuration, or that moeagent sets itself."""


class Difference(Record):
    """One flag whose effective value is not the requested one."""

    flag: str
    requested: bool | int | float | str
    effective: bool | int | float | str | None


def by_flag(engine: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under internal names (tp_size) as flags (--tp-size); names without a flag are left out."""
    known = catalogue(engine)
    found = {}
    for name, value in settings.items():
        dest = _RENAMED.get(engine, {}).get(name, name)
        entry = known.entry("--" + dest.replace("_", "-"))
        if entry is not None:
            found[entry.name] = value
    return found


def in_force(
    engine: Engine, server_info: Mapping[str, Any] | None, log_text: str, words: Sequence[str] = ()
) -> dict[str, Any]:
    """Settings in force: as they arrived at the process, then by the engine's own word, which wins."""
    return from_command_line(engine.name, words) | engine.effective(server_info, log_text)


def from_command_line(engine: str, words: Sequence[str]) -> dict[str, Any]:
    """Settings on the command line of a running server (/proc/PID/cmdline), by flag.

    They follow the words that moeagent itself puts before a configuration's flags, whatever wrapper stands in
    front. Empty where those are not found: the process renamed itself, or stands for the server elsewhere.
    """
    start = next((at for at in range(len(words)) if _is_own(words[at : at + 4])), None)
    if start is None:
        return {}
    known, found = catalogue(engine), {}
    rest = list(words[start + 4 :])
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        values = [value] if equals else []
        while not equals and rest and not _begins_flag(rest[0]):
            values.append(rest.pop(0))
        entry = known.entry(name)
        found[entry.name if entry else name] = _value(" ".join(values)) if values else True
    return found


def _is_own(words: Sequence[str]) -> bool:
    """`--host 127.0.0.1 --port N`, which every launch command has right before the flags."""
    return list(words[:3]) == ["--host", "127.0.0.1", "--port"] and len(words) == 4


def _begins_flag(word: str) -> bool:
    return word.startswith("-") and isinstance(_value(word), str)


def _value(text: str) -> int | float | str:
    """A number where the text is one."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def differences(config: ServerConfig, effective: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Requested flags that are in force with another value, as far as the engine reports them."""
    known = catalogue(config.engine)
    found = []
    for name, requested in config.flags.items():
        entry = known.entry(name)
        flag = entry.name if entry else name
        if flag in effective and not same_value(requested, effective[flag]):
            value = effective[flag]
            shown = value if isinstance(value, bool | int | float | str) or value is None else str(value)
            found.append(Difference(flag=flag, requested=requested, effective=shown))
    return tuple(found)


def same_value(requested: Any, effective: Any) -> bool:
    """Equality over spellings: 8 and "8", 0.9 and 0.90, True and "true", "1 2" and [1, 2]."""
    if isinstance(effective, list | tuple):
        return [str(v) for v in effective] == str(requested).split()
    if isinstance(requested, bool) or isinstance(effective, bool):
        return str(requested).lower() == str(effective).lower()
    try:
        return float(requested) == float(effective)
    except (TypeError, ValueError):
        return str(requested).lower() == str(effective).lower()


def effective_identity(
    config: ServerConfig, effective: Mapping[str, Any], facts: EngineFacts | None = None
) -> str:
    """Equal for two configurations that really ran the same.

    A requested flag counts with its effective value, or as requested where the engine does not report it;
    a flag that the installed version reads nowhere, or that is in force with no value, does not count at all.
    """
    known = catalogue(config.engine)
    unread = {knob.name for knob in facts.knobs if knob.status == "unread"} if facts else set()
    entries = {flag: known.entry(flag) for flag in config.flags}
    requested = {(entry.name if (entry := entries[flag]) else flag): v for flag, v in config.flags.items()}
    settings = requested | dict(effective)
    ignored = VOLATILE | unread
    counted = {k: str(v) for k, v in settings.items() if k not in ignored and v is not None}
    return fingerprint({"settings": counted, "env": config.env, "install": config.install})


_RENAMED = {
    "sglang": {"fp8_gemm_runner_backend": "fp8_gemm_backend", "fp4_gemm_runner_backend": "fp4_gemm_backend"},
    "vllm": {"max_seq_len": "max_model_len"},
}
"""Internal names that are not the flag's name: SGLang 0.5.9 server_args.py, vLLM 0.25.1 engine line."""
