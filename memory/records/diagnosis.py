"""The answer to: what failed, which line is the cause, what to change next."""

from typing import Literal

from pydantic import Field

from moeagent.memory.records.base import Record

Stage = Literal["load", "kv_pool", "graph_capture", "warmup", "serving", "client", "host"]
Direction = Literal["raise", "lower", "add", "remove", "replace", "action"]


class Symptom(Record):
    """A line that was set aside, and why it is not the cause."""

    line_no: int
    line: str
    reason: str


class Alternative(Record):
    """Another class that the log allows."""

    failure_class: str = Field(alias="class", serialization_alias="class")
    confidence: float


class Remedy(Record):
    """One thing to change: target is a flag, an environment variable or a thing outside the server."""

    target: str
    direction: Direction
    change: str
    """In words, with its size."""
    why: str
    source: str
    value: bool | int | float | str | None = None
    """The exact new value where the numbers in the log decide it."""


class Diagnosis(Record):
    """One failure named by its cause."""

    failure_class: str = Field(alias="class", serialization_alias="class")
    """A class of the failure taxonomy, such as oom.kv_pool.startup."""
    confidence: float = Field(ge=0, le=1)
    root_line: str | None
    line_no: int | None
    """1-based."""
    stage: Stage
    ranks: tuple[str, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    healthy: bool = False
    explanation: str
    by: Literal["signatures", "structure", "model"] = "signatures"
