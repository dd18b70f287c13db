"""The course of a campaign: which ideas are open, and what is still to be confirmed."""

from dataclasses import dataclass, field

from moeagent.memory.records import ServerConfig
from moeagent.tools.stats.assess import Assessment, Side


@dataclass
class Confirming:
    """Fresh launches of baseline and champion, and which of them are still to come."""

    order: list[Side]
    first: int
    """Index of the first fresh launch in the ledger."""


@dataclass
class Course:
    """Open ideas with the configuration that stands for each, and their last assessments."""

    candidates: dict[str, ServerConfig] = field(default_factory=dict)
    open: dict[str, Assessment] = field(default_factory=dict)
    fresh: str | None = None
    """The idea launched last."""
    ended: str = ""
    """Why no further idea comes."""
    confirming: Confirming | None = None
