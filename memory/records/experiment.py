"""Launches, and what they led to."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from moeagent.memory.records.base import Record
from moeagent.memory.records.config import ServerConfig
from moeagent.memory.records.diagnosis import Diagnosis
from moeagent.memory.records.measurement import Rung


class LaunchOutcome(StrEnum):
    """How a launch ended."""

    COMPLETED = "completed"
    """Every planned rung was measured."""
    DIED_STARTING = "died-starting"
    HUNG_STARTING = "hung-starting"
    DIED_SERVING = "died-serving"
    """The server died under load: partial results are kept."""
    REFUSED = "refused"
    """Never started: the command, the port or the host said no."""
    STOPPED = "stopped"
    """Stopped by us before the ladder was done."""


class StabilityBoundary(Record):
    """Between which concurrencies a configuration stops working."""

    last_good: int | None
    first_failed: int | None


class Launch(Record):
    """One start of one server."""

    id: str
    """L1, L2, ... in the order of the run."""
    hypothesis: str | None
    """None for a baseline launch."""
    config: ServerConfig
    command: str
    """The command as it ran, quoted for a shell, secrets masked."""
    outcome: LaunchOutcome
    ready_after_s: float | None = None
    effective: dict[str, Any] = Field(default_factory=dict)
    """What the engine says is in force, as far as it says so."""
    memory: dict[str, float] = Field(default_factory=dict)
    """Numbers of the engine's memory lines: weights_gib, kv_tokens, kv_gib, available_gib, graphs_gib."""
    rungs: tuple[Rung, ...] = ()
    boundary: StabilityBoundary | None = None
    diagnosis: Diagnosis | None = None
    log: str | None = None
    """Hash of the server log in the run's logs/ folder."""
    simulated: bool = False


class Pivot(Record):
    """A remedy applied after a failed launch: one attempt of a bounded, one-way series."""

    hypothesis: str
    attempt: int
    remedy: str
    config_before: str
    config_after: str
