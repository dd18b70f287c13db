"""The seam between the loop and whoever has the next idea."""

from typing import Literal, Protocol

from pydantic import Field

from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import ConfigChange, Hypothesis, PredictedEffect, Record, ServerConfig


class Draft(Record):
    """A hypothesis that has no id yet; the loop numbers it once it is vetted."""

    statement: str
    reason: str
    change: ConfigChange
    parent: str
    """Id of the ServerConfig that the change applies to."""
    predicted: tuple[PredictedEffect, ...] = ()
    refuted_by: str
    category: str = "other"
    risk: float = Field(default=0.0, ge=0, le=1)
    risk_why: str = ""
    source: Literal["playbook", "model", "user", "search"]
    prior: str = ""
    from_run: str = ""
    """Id of the earlier run that the idea came from."""
    move: str = ""
    """Id of the playbook move, empty for an idea that is not from the playbook."""
    canary: tuple[int, ...] = ()
    """Concurrencies to climb through before the ladder's jump, when the server may die under load."""
    note: str = ""
    """Why this proposer had the turn, when another was meant to have it."""

    def numbered(self, hypothesis_id: str) -> Hypothesis:
        """The hypothesis of this draft."""
        return Hypothesis(id=hypothesis_id, **self.model_dump(exclude={"note"}))


class Nothing(Record):
    """No idea is left that is worth its launch."""

    reason: str
    note: str = ""


Proposal = Draft | Nothing


class Proposer(Protocol):
    """Decides what to try next, from the view alone."""

    @property
    def name(self) -> str:
        """Who proposes, for the log."""

    def propose(self, view: CampaignView) -> Proposal:
        """The next hypothesis, or Nothing when the ideas are exhausted."""


class Predictor(Protocol):
    """What the models of the machine expect; the loop binds host, model and workload to it."""

    def predict_effects(self, parent: ServerConfig, child: ServerConfig) -> tuple[PredictedEffect, ...]:
        """Relative change of output tok/s at each rung of the ladder; empty when it cannot tell."""

    def risk(self, child: ServerConfig) -> tuple[float, str]:
        """Chance (0..1) that a server of this configuration dies, and why."""
