"""What the survey found: the machine, the engine, the model."""

from typing import Any, Literal

from pydantic import Field

from moeagent.memory.records.base import Record


class Gpu(Record):
    """One GPU as nvidia-smi shows it."""

    index: int
    name: str
    memory_mib: int
    memory_used_mib: int = 0
    compute_capability: str | None = None
    """Such as "12.0"."""
    power_limit_w: float | None = None


class HostFacts(Record):
    """The host of the campaign."""

    name: str
    """As the user wrote it."""
    machine_id: str
    """Identity of the machine for the scope of findings: a hash, no secret."""
    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    cpu_cores: int | None = None
    ram_gib: float | None = None
    disk_free_gib: float | None = None
    shm_gib: float | None = None
    topology: str | None = None
    """The text of `nvidia-smi topo -m`."""
    warnings: tuple[str, ...] = ()
    """Each finding with its consequence."""
    simulated: bool = False


class Knob(Record):
    """A flag or environment variable as the installed engine declares it."""

    name: str
    kind: Literal["bool", "int", "float", "str", "json"]
    choices: tuple[str, ...] | None = None
    default: bool | int | float | str | None = None
    aliases: tuple[str, ...] = ()
    help: str = ""
    status: Literal["current", "deprecated", "removed", "unread"] = "current"


class EngineFacts(Record):
    """The installed engine by its own word."""

    engine: str
    version: str | None
    knobs: tuple[Knob, ...] = ()
    """Empty when the engine's parser could not be read."""
    source: str = ""
    """How the knobs were read: parser, help, catalogue."""

    def knob(self, name: str) -> Knob | None:
        """The knob of this name or alias."""
        return next((k for k in self.knobs if name == k.name or name in k.aliases), None)


class ModelFacts(Record):
    """The model's own config.json, as read from the host."""

    path: str
    architecture: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    size_gib: float | None = None


class Scope(Record):
    """Where a finding holds: hardware, engine version, model."""

    gpu: str
    gpu_count: int
    engine: str
    engine_version: str | None
    model: str
    simulated: bool = False
