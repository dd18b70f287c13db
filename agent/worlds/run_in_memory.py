"""A run whose tape and texts stay in memory: a campaign in virtual time leaves nothing to keep."""

from pathlib import Path

from moeagent.memory.errors import TapeError
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Entry, EntryType, Json
from moeagent.memory.tape.tape import Tape, Writer


class MemoryWriter(Writer):
    """Takes the tape's lines and drops them: nothing is replayed in virtual time."""

    def __init__(self) -> None:
        super().__init__(fd=-1, last_sum="", line_no=0)

    def append(self, type_: EntryType, body: Json, *, newline_first: bool = False) -> Entry:
        """Count the line."""
        self._line_no += 1
        return Entry(self._line_no, type_, body, "")

    def close(self) -> None:
        """Nothing is open."""


class MemoryFolder(RunFolder):
    """Texts by name, in a dict."""

    def __init__(self, run: str) -> None:
        super().__init__(Path(run))
        self._texts: dict[str, str] = {}

    def put_text(self, text: str) -> str:
        """Keep a text under a running number."""
        name = f"text-{len(self._texts)}"
        self._texts[name] = text
        return name

    def text(self, name: str) -> str:
        """A text that was put. Raises TapeError for another name."""
        if name not in self._texts:
            raise TapeError(f"there is no text {name} in this run")
        return self._texts[name]

    def put_raw(self, data: bytes) -> str:
        """Virtual rungs have no per-request results."""
        return ""


def memory_tape() -> Tape:
    """A tape that records into nothing."""
    return Tape(None, MemoryWriter())
