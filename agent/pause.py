"""A run in slices: it pauses by itself between two launches; `resume` goes on, if need be on another machine.

Unlike a limit, a slice changes no decision: the ideas that are open stay open.
"""

from dataclasses import dataclass

from pydantic import PositiveFloat, PositiveInt

from moeagent.agent.events import Decided, Event
from moeagent.agent.interrupt import StopRequest
from moeagent.memory.records import Record
from moeagent.tools.hosts.clock import Clock


class Slice(Record):
    """How much of a run one process does."""

    launches: PositiveInt | None = None
    """Pause once so many were recorded in this process."""
    minutes: PositiveFloat | None = None
    """Begin no launch after so many."""


@dataclass
class PauseWatch:
    """Listens to the loop and asks for a pause; a replay's launches are counted, but lie before the slice."""

    wanted: Slice
    stop: StopRequest
    clock: Clock
    recorded: int
    """Launches that the tape holds already."""

    def __post_init__(self) -> None:
        self._began = self.clock.now()
        self._launches = 0

    def __call__(self, event: Event) -> None:
        """Look at one event."""
        if not isinstance(event, Decided) or event.kind != "launch":
            return
        self._launches += 1
        fresh = self._launches - self.recorded
        minutes = (self.clock.now() - self._began) / 60
        if fresh > 0 and (self._enough(fresh) or self._late(minutes)):
            self.stop.ask_for_pause(f"paused after {fresh} launches in {minutes:.1f} minutes")

    def _enough(self, launches: int) -> bool:
        return self.wanted.launches is not None and launches >= self.wanted.launches

    def _late(self, minutes: float) -> bool:
        return self.wanted.minutes is not None and minutes >= self.wanted.minutes
