"""A hypothesis carries a number; its verdict respects noise."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from moeagent.memory.records.base import Record
from moeagent.memory.records.config import ConfigChange


class PredictedEffect(Record):
    """Relative change of output tok/s at one concurrency against the parent: 0.05 is +5 %."""

    concurrency: int
    effect: float
    low: float
    high: float


class Hypothesis(Record):
    """A statement that a measurement can refute."""

    id: str
    """H1, H2, ... in the order of the run."""
    statement: str
    reason: str
    change: ConfigChange
    parent: str
    """Id of the ServerConfig that the change applies to."""
    predicted: tuple[PredictedEffect, ...] = ()
    refuted_by: str
    category: str = "other"
    """Which limit it moves: memory, batching, kernels, communication, speculation, scheduling, ..."""
    risk: float = Field(default=0.0, ge=0, le=1)
    """Predicted chance that the server dies."""
    risk_why: str = ""
    source: Literal["playbook", "model", "user", "search"]
    prior: str = ""
    """Which earlier run or fact the idea came from."""
    from_run: str = ""
    """Id of the earlier run in which the idea paid, empty for an idea of this run."""
    move: str = ""
    """Id of the playbook move, empty for an idea that is not from the playbook."""
    canary: tuple[int, ...] = ()
    """Concurrencies to climb through before the ladder's jump, when the server may die under load."""


class VerdictKind(StrEnum):
    """How a hypothesis ended."""

    IMPROVED = "improved"
    NEUTRAL = "neutral"
    REGRESSED = "regressed"
    BLOCKED = "blocked"
    INVALID = "invalid"
    NO_OP = "no-op"
    INCONCLUSIVE = "inconclusive"


class Effect(Record):
    """Measured relative change with its confidence interval; concurrency None is the goal's score."""

    concurrency: int | None
    effect: float
    low: float
    high: float
    launches: tuple[int, int]
    """Launches of the incumbent and of the candidate that the interval rests on."""


class PredictionScore(Record):
    """How well the prediction held."""

    concurrency: int
    predicted: float
    measured: float
    inside: bool
    """The measured effect lies in the predicted range."""
    sign_right: bool


class Verdict(Record):
    """The judgement of one hypothesis."""

    hypothesis: str
    kind: VerdictKind
    goal_effect: Effect | None = None
    effects: tuple[Effect, ...] = ()
    predictions: tuple[PredictionScore, ...] = ()
    reason: str
    broken_constraints: tuple[str, ...] = ()

    @property
    def supported_gain(self) -> Effect | None:
        """The gain that may be shown as one: only an improved verdict supports it."""
        return self.goal_effect if self.kind is VerdictKind.IMPROVED else None
