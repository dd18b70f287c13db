"""A growing log, read piece by piece from where the last look ended."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moeagent.memory.errors import InputError
from moeagent.memory.records.base import Record
from moeagent.tools.hosts.protocol import Host

if TYPE_CHECKING:
    from moeagent.tools.engines.protocol import ReadySpec

_PIECE = 1024 * 1024
_PIECES_PER_LOOK = 16
_LONGEST_LINE = 64 * 1024
# Progress bars end their lines with a carriage return.
_LINE_END = re.compile(rb"\r\n|\n|\r")


class StageSeen(Record):
    """A stage of the start-up and when its line was first seen."""

    name: str
    at_s: float
    """Seconds since the wait began."""


def compile_pattern(pattern: str) -> Any:
    """A pattern in RE2 syntax, safe against slow matches on hostile logs. Raises InputError."""
    import re2

    try:
        return re2.compile(pattern)
    except re2.error as error:
        raise InputError(f"log pattern {pattern!r}: {error}") from error


@dataclass
class LogReader:
    """Stages and the ready line found in text that comes in pieces. Stages only move forward."""

    spec: "ReadySpec"
    stages: list[StageSeen] = field(default_factory=list)
    ready_line: bool = False
    last_line: str = ""
    _position: int = -1
    _partial: bytes = b""

    def __post_init__(self) -> None:
        self._patterns = [compile_pattern(stage.pattern) for stage in self.spec.stages]
        self._ready = None if self.spec.ready_log is None else compile_pattern(self.spec.ready_log)

    @property
    def stage(self) -> str | None:
        """The stage that was reached; None before the first."""
        return self.stages[-1].name if self.stages else None

    @property
    def stall_s(self) -> float | None:
        """How long the present stage may be silent; None when the engine states no stages."""
        if not self.spec.stages:
            return None
        return self.spec.stages[max(0, self._position)].stall_s

    def feed(self, data: bytes, at_s: float) -> None:
        """Take the next bytes of the log. A line that is not ended yet is kept for the next time."""
        *lines, self._partial = _LINE_END.split(self._partial + data)
        self._partial = self._partial[-_LONGEST_LINE:]
        for raw in lines:
            self._take(raw.decode("utf-8", "replace"), at_s)

    def _take(self, line: str, at_s: float) -> None:
        if not line.strip():
            return
        self.last_line = line[:400]
        self.ready_line = self.ready_line or (self._ready is not None and bool(self._ready.search(line)))
        for position in range(self._position + 1, len(self._patterns)):
            if self._patterns[position].search(line):
                self._position = position
                self.stages.append(StageSeen(name=self.spec.stages[position].name, at_s=at_s))


@dataclass
class LogFollower:
    """Reads a log file of a host into a LogReader."""

    host: Host
    path: str
    reader: LogReader
    offset: int = 0
    """Bytes read so far."""

    def look(self, at_s: float) -> bool:
        """Read what is new. True when the log has grown."""
        before = self.offset
        for _ in range(_PIECES_PER_LOOK):
            data = self.host.read(self.path, offset=self.offset, limit=_PIECE)
            self.offset += len(data)
            self.reader.feed(data, at_s)
            if len(data) < _PIECE:
                break
        return self.offset > before
