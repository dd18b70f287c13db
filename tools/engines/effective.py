"""Requested against effective: what a server was asked for, and what it says is in force."""

from collections.abc import Mapping
from typing import Any

from moeagent.memory.records import EngineFacts, Record, ServerConfig, fingerprint
from moeagent.tools.engines.catalogue import catalogue

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
    a flag that the installed version reads nowhere does not count at all.
    """
    known = catalogue(config.engine)
    unread = {knob.name for knob in facts.knobs if knob.status == "unread"} if facts else set()
    entries = {flag: known.entry(flag) for flag in config.flags}
    requested = {(entry.name if (entry := entries[flag]) else flag): v for flag, v in config.flags.items()}
    settings = requested | dict(effective)
    counted = {k: str(v) for k, v in settings.items() if k not in VOLATILE and k not in unread}
    return fingerprint({"settings": counted, "env": config.env, "install": config.install})


_RENAMED = {
    "sglang": {"fp8_gemm_runner_backend": "fp8_gemm_backend", "fp4_gemm_runner_backend": "fp4_gemm_backend"},
    "vllm": {"max_seq_len": "max_model_len"},
}
"""Internal names that are not the flag's name: SGLang 0.5.9 server_args.py, vLLM 0.25.1 engine line."""
