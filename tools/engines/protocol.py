"""What an engine is to the rest of moeagent: data about it, and pure functions over what it printed.

An engine never touches the host. It says which commands to run (`probes`, `command`) and what their output
means (`facts`, `effective`, `memory`), so that a run is replayed without a host.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field, PositiveFloat

from moeagent.memory.records import EngineFacts, Record, ServerConfig
from moeagent.memory.records.config import EnvName
from moeagent.tools.hosts.protocol import Command, CommandResult
from moeagent.tools.hosts.wrappers import WrapperSpec


class StageSpec(Record):
    """One stage of a start-up, in the order in which the engine passes through them."""

    name: str
    """load, kv_pool, graph_capture, warmup or serving, as in a diagnosis."""
    pattern: str
    """Regular expression (RE2 syntax) of the log line that shows that this stage has begun."""
    stall_s: PositiveFloat
    """In this stage, no new log line for this long means that the server hangs."""


class ReadySpec(Record):
    """How a server shows that it serves: process alive, log line seen, health endpoint answers 200."""

    health_paths: tuple[str, ...]
    """HTTP paths in the order of preference; the first that is not 404 decides."""
    ready_log: str | None
    """Regular expression of the line that says so in the log; None when the engine prints none."""
    stages: tuple[StageSpec, ...]


class EngineInstall(Record):
    """One of the engine installs that the user lists: a virtual environment, an image, a wrapper."""

    name: str = "default"
    command: tuple[str, ...] = ()
    """Launch prefix up to where the flags begin, such as `/opt/venv/bin/python -m sglang.launch_server`;
    empty for the engine's own default. What starts it in a container stands in `wrapper`."""
    env: dict[EnvName, str] = Field(default_factory=dict)
    """Set for every launch of this install, under the configuration's own variables."""
    version: str | None = None
    """As the user states it; None to ask the engine."""
    simulated: bool = False
    allow: tuple[str, ...] = ()
    """Flags of the deny list that the user allows for this install, such as --trust-remote-code."""
    wrapper: WrapperSpec | None = None
    """What `command` is started through: a container, a batch system."""
    outside: int = 0
    """How many words of `command` are the wrapper's; set by moeagent."""


@dataclass(frozen=True)
class Probe:
    """A read-only command whose output is a fact; its name keys the result."""

    name: str
    command: Command
    timeout_s: float = 60.0
    unless: str | None = None
    """Name of an earlier probe that makes this one needless when it ended with status 0."""
    cached_by: str | None = None
    """Name of an earlier probe: the same output of that one means the same output of this one."""


class LoadApi(Record):
    """How a load generator speaks to the engine."""

    api: str
    """openai-completions, openai-chat, sglang or llamacpp, as the load generator names them."""
    flush_path: str | None
    """POST here empties the prefix cache between rungs; None where the engine has no such endpoint."""
    info_path: str | None
    """GET here tells the settings in force; None where the engine has no such endpoint."""
    ignore_eos_body: dict[str, Any] = Field(default_factory=dict)
    """What a request body carries so that exactly the requested number of tokens is generated."""


class Engine(Protocol):
    """SGLang, vLLM or llama.cpp."""

    @property
    def name(self) -> str:
        """sglang, vllm or llamacpp."""

    @property
    def ready(self) -> ReadySpec:
        """How readiness and a hang are told."""

    @property
    def load(self) -> LoadApi:
        """How it is put under load."""

    def command(self, config: ServerConfig, *, model: str, port: int, install: EngineInstall) -> Command:
        """The launch command on 127.0.0.1. Raises InputError for a flag that moeagent never passes on."""

    def probes(self, install: EngineInstall) -> tuple[Probe, ...]:
        """Commands that ask the installed engine for its version and its own flags."""

    def facts(self, results: Mapping[str, CommandResult], install: EngineInstall) -> EngineFacts:
        """What the probes' output says; the built-in catalogue where the engine's parser was unreadable."""

    def effective(self, server_info: Mapping[str, Any] | None, log_text: str) -> dict[str, Any]:
        """Settings in force by the engine's own word, keyed by flag name; what it adjusted wins."""

    def memory(self, log_text: str) -> dict[str, float]:
        """weights_gib, kv_tokens, kv_gib, available_gib, graphs_gib per GPU, as far as the log tells."""
