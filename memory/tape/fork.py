"""A fork is a copy of a tape's beginning under a new header, then a resume."""

from collections.abc import Sequence
from pathlib import Path

from moeagent.memory.errors import InputError
from moeagent.memory.tape.lines import Entry, Json, read_tape
from moeagent.memory.tape.tape import FORMAT, Writer


def fork_tape(source: Path, target: Path, *, at_line: int, header: Json) -> int:
    """Copy the source's lines up to `at_line` (1-based, inclusive) behind a new header; returns lines copied.

    A request whose response lies beyond the cut is left out. Raises InputError where the line is not there.
    """
    entries = read_tape(source).entries
    if not 1 <= at_line <= entries[-1].line_no:
        raise InputError(f"--at {at_line}: the tape has lines 1 to {entries[-1].line_no}")
    return copy_entries([e for e in entries[1:] if e.line_no <= at_line], target, header)


def copy_entries(entries: Sequence[Entry], target: Path, header: Json) -> int:
    """Write a new tape of a header and these entries; returns entries copied.

    A request at the end, whose response was cut off, is left out.
    """
    kept = entries[:-1] if entries and entries[-1].type == "request" else entries
    writer = Writer.create(target)
    writer.append("header", {"format": FORMAT, **header})
    for entry in kept:
        writer.append(entry.type, {k: v for k, v in entry.body.items() if k != "torn"})
    writer.close()
    return len(kept)
