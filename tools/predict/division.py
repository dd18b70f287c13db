"""How a card is divided, and the verdict that follows from it."""

from typing import Literal

from moeagent.memory.records import Record
from moeagent.tools.predict.engine_rules import Defaults
from moeagent.tools.predict.records import MemoryLine
from moeagent.tools.predict.settings import EngineSettings

Judgement = Literal["fits", "tight", "does_not_fit"]

_TIGHT_GIB = 1.0
_VLLM_START_DOUBT_GIB = 0.3


class Division(Record):
    """The memory of one GPU after the engine's rule was applied, GiB."""

    static_gib: float
    """What the rule leaves for the KV pool; negative when the weights alone exceed it."""
    pool_gib: float
    kv_tokens: int
    max_running: int
    start_gib: float
    """Left when the server is ready."""
    load_gib: float
    """Left with the largest prefill chunk in flight."""
    lines: tuple[MemoryLine, ...]
    need: str
    """The sum that static_gib is the rest of, in words."""


def verdict(
    settings: EngineSettings, chosen: Defaults, division: Division, doubt_gib: float
) -> tuple[Judgement, str]:
    """Verdict and the number that decides. It refuses only what is short by more than the doubt."""
    if division.static_gib < -doubt_gib:
        return "does_not_fit", f"{division.need}: short by {-division.static_gib:.2f} GiB at start"
    start_doubt = _VLLM_START_DOUBT_GIB if settings.engine == "vllm" else doubt_gib
    if division.start_gib < -start_doubt:
        return (
            "does_not_fit",
            f"needs {-division.start_gib:.2f} GiB more than is free before the server is ready",
        )
    if division.static_gib < doubt_gib:
        return "tight", f"{division.need} leaves {division.static_gib:.2f} GiB, +-{doubt_gib:.1f}"
    if settings.engine == "vllm" and division.kv_tokens * settings.pp < chosen.context_len:
        return _short_context(chosen, division, doubt_gib)
    if division.load_gib < _TIGHT_GIB:
        return "tight", f"head-room under load {division.load_gib:.2f} GiB: it may die while serving"
    return "fits", f"head-room under load {division.load_gib:.2f} GiB"


def _short_context(chosen: Defaults, division: Division, doubt_gib: float) -> tuple[Judgement, str]:
    """vLLM refuses to start when the pool cannot hold one request of the full context."""
    why = f"the pool holds {division.kv_tokens:,} tokens, one full request needs {chosen.context_len:,}"
    per_token = division.pool_gib / division.kv_tokens if division.kv_tokens else 0.0
    short_gib = (chosen.context_len - division.kv_tokens) * per_token
    return ("does_not_fit" if short_gib > doubt_gib else "tight"), why
