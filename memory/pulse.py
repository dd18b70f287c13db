"""What moves between two lines of the tape, in live.json beside it, for readers in other terminals.

It is no part of the record: it is replaced a few times a second while a run works, and a reader who finds it
missing, old or damaged does without.
"""

import json
import os
import time
from pathlib import Path

from pydantic import ValidationError

from moeagent.memory.records.base import Record

FILE = "live.json"
EVERY_S = 0.5
"""A person does not read faster, and the disk has better things to do."""


class Pulse(Record):
    """The last that was heard of the step under way."""

    tape_bytes: int
    """Size of the tape when it was written: beside a longer tape it is about a step that is over."""
    text: str = ""
    """What moved, in words: a stage with a line of the server's log, or how far a rung is."""
    done: int = 0
    total: int = 0
    rate: float = 0.0
    """Output tokens per second so far."""


class PulseFile:
    """Writes the pulse of one run; where that fails the run goes on without."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._written_at = 0.0

    def write(self, pulse: Pulse) -> None:
        """Replace the file, at most every half second."""
        now = time.monotonic()
        if now - self._written_at < EVERY_S:
            return
        self._written_at = now
        temporary = self._path.with_name(f".{FILE}.{os.getpid()}")
        try:
            temporary.write_text(pulse.model_dump_json())
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def remove(self) -> None:
        """Nothing moves any more."""
        self._path.unlink(missing_ok=True)


def read_pulse(folder: Path, tape_bytes: int) -> Pulse | None:
    """What moves beside a tape of this size; None where nothing is known."""
    try:
        found = Pulse.model_validate(json.loads((folder / FILE).read_bytes()))
    except (OSError, ValueError, ValidationError):
        return None
    return found if found.tape_bytes == tape_bytes else None
