"""From a server configuration to the figures that the predictor works with, by tables/engines.toml."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import Field, ValidationError

from moeagent.memory.errors import InputError
from moeagent.memory.records import Record, ServerConfig
from moeagent.tools.predict import tables
from moeagent.tools.predict.tables.schema import EngineMap, FlagMap


class EngineSettings(Record):
    """What a configuration says, engine-neutral. None: the engine's default."""

    engine: str
    tp: int = Field(default=1, ge=1)
    ep: int = Field(default=1, ge=1)
    dp: int = Field(default=1, ge=1)
    pp: int = Field(default=1, ge=1)
    dcp: int = Field(default=1, ge=1)
    dp_attention: bool = False
    expert_parallel: bool = False
    a2a: str = "none"
    mem_fraction: float | None = Field(default=None, gt=0, le=1)
    max_running: int | None = None
    max_pool_tokens: int | None = None
    conservativeness: float = Field(default=1.0, ge=0)
    """SGLang: factor on the room that is kept for output tokens still to come."""
    chunk: int | None = None
    graph_bs: int | None = None
    graphs_off: bool = False
    kv_dtype: str = "auto"
    kv_dtype_v: str | None = None
    context_len: int | None = None
    page_size: int | None = None
    quantisation: str | None = None
    spec_algorithm: str | None = None
    spec_steps: int | None = None
    spec_draft_tokens: int | None = None
    spec_topk: int = 1
    custom_allreduce_off: bool = False
    slots: int | None = None
    batch: int | None = None
    threads: int | None = None
    batch_threads: int | None = None
    gpu_layers: str | int = "auto"
    fabric_variant: str = ""
    """tuned, oneshot, no-p2p or nccl, as the environment selects it."""
    no_effect: tuple[str, ...] = ()
    """Flags of the configuration that change no figure."""
    unmodelled: tuple[str, ...] = ()
    """Flags of the configuration that no formula here reads."""

    @property
    def gpus(self) -> int:
        """GPUs in use. SGLang's DP attention divides the TP ranks, any other DP multiplies them."""
        return self.tp * self.pp * (1 if self.dp_attention and self.engine == "sglang" else self.dp)

    @property
    def attention_dp(self) -> int:
        """Ranks with a KV cache of their own that feed the same experts."""
        return self.dp if self.dp_attention or self.engine == "vllm" else 1

    @property
    def replicas(self) -> int:
        """Independent copies of the whole model."""
        return self.dp if self.engine == "sglang" and not self.dp_attention else 1

    @property
    def attention_tp(self) -> int:
        """Ranks that share one attention layer."""
        return max(self.tp // self.dp, 1) if self.dp_attention and self.engine == "sglang" else self.tp

    @property
    def expert_ranks(self) -> int:
        """Ranks that share the routed experts of a layer."""
        return self.tp * (self.dp if self.engine == "vllm" else 1)

    @property
    def expert_ep(self) -> int:
        """Of these, how many hold whole experts of their own; an A2A backend forces all of them."""
        if self.engine == "vllm":
            return self.expert_ranks if self.expert_parallel else 1
        return self.tp if self.has_a2a else min(self.ep, self.tp)

    @property
    def has_a2a(self) -> bool:
        """True when tokens travel to their experts by an all-to-all backend instead of all-reduces."""
        if self.engine == "vllm":
            return self.expert_parallel and self.dp > 1
        return self.a2a not in ("none", "")

    @property
    def draft_tokens(self) -> int:
        """Tokens that one verification looks at; 1 without speculation."""
        if self.spec_algorithm is None:
            return 1
        return self.spec_draft_tokens or self.draft_steps + 1

    @property
    def draft_steps(self) -> int:
        """Steps of the draft model per verification; SGLang's and vLLM's own default is 3."""
        return self.spec_steps or 3


def read_settings(config: ServerConfig) -> EngineSettings:
    """What a configuration says. Raises InputError for an engine without a table or an impossible value."""
    engine = tables.engine_map(config.engine)
    if engine is None:
        raise InputError(f'engine "{config.engine}" has no prediction table: use sglang, vllm or llamacpp')
    fields: dict[str, Any] = {"engine": config.engine}
    unmodelled = []
    silent = {entry.name for entry in engine.no_effect}
    for name, value in config.flags.items():
        found = next((flag for flag in engine.flags if name in flag.names), None)
        if found is not None:
            fields.update(_assignments(found, name, value))
        elif name not in silent:
            unmodelled.append(name)
    fields["fabric_variant"] = _fabric_variant(engine, config.env)
    fields["no_effect"] = tuple(sorted(silent & config.flags.keys()))
    try:
        return EngineSettings(**fields, unmodelled=tuple(sorted(unmodelled)))
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{config.engine}: {first['loc'][0]} = {first.get('input')!r}"
        raise InputError(f"{what}: {first['msg']}") from error


def _assignments(flag: FlagMap, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if flag.field is not None:
        yield flag.field, value
        return
    try:
        parsed = json.loads(str(value))
    except json.JSONDecodeError as error:
        raise InputError(f"{name} is not a JSON object: {error}") from error
    for key, field in flag.json_fields.items():
        if isinstance(parsed, dict) and key in parsed:
            yield field, parsed[key]


def _fabric_variant(engine: EngineMap, env: dict[str, str]) -> str:
    for entry in engine.env:
        if re.search(entry.pattern, env.get(entry.name, "\n")):
            return entry.fabric
    return ""
