"""What the loop tells whoever watches: steps, progress and decisions. Renderers listen; nothing else does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moeagent.memory.records import Record
from moeagent.memory.records.approval import Question


@dataclass(frozen=True)
class StepBegan:
    """A node of the graph is entered."""

    step: str
    about: str = ""


@dataclass(frozen=True)
class Progress:
    """Something moved inside a step: a start-up stage, a rung filling up."""

    step: str
    text: str
    done: int = 0
    total: int = 0
    rate: float = 0.0


@dataclass(frozen=True)
class Decided:
    """The loop concluded something."""

    kind: str
    record: Record


@dataclass(frozen=True)
class Asking:
    """A launch has to be approved: whoever holds the terminal lets go of it, whoever notifies can do so."""

    question: Question


@dataclass(frozen=True)
class Unanswered:
    """Nobody could be asked, and the run stops to wait: the place for a notification."""

    question: Question


@dataclass(frozen=True)
class Warned:
    """Something beside the campaign went wrong; the run goes on, or has ended as it would have."""

    text: str


Event = StepBegan | Progress | Decided | Asking | Unanswered | Warned


@dataclass
class Events:
    """Hands every event to every listener, in order."""

    listeners: list[Callable[[Event], Any]] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        """Tell everybody."""
        for listener in self.listeners:
            listener(event)
