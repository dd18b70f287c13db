"""A fork is a copy of a tape's beginning under a new header, then a resume."""

from collections.abc import Sequence
from pathlib import Path

from moeagent.memory.errors import InputError
from moeagent.memory.tape.lines import Entry, Json, TapeFile, read_tape
from moeagent.memory.tape.tape import FORMAT, Writer


def fork_tape(source: Path, target: Path, *, at_line: int, header: Json) -> int:
    """Copy the source's lines up to `at_line` (1-based, inclusive) behind a new header; returns lines copied.

    A request whose response lies beyond the cut is left out. Raises InputError where the line is not there.
    """
    tape = read_tape(source)
    check_line(tape, at_line)
    return copy_entries([e for e in tape.entries[1:] if e.line_no <= at_line], target, header)


def check_line(tape: TapeFile, line: int) -> None:
    """Raise InputError where the tape has no such line."""
    if not 1 <= line <= tape.entries[-1].line_no:
        raise InputError(f"--at {line}: the tape has lines 1 to {tape.entries[-1].line_no}")


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
