"""A fork is a copy of a tape's beginning under a new header, then a resume."""

from pathlib import Path

from moeagent.memory.errors import InputError
from moeagent.memory.tape.lines import Json, read_tape
from moeagent.memory.tape.tape import FORMAT, Writer


def fork_tape(source: Path, target: Path, *, at_line: int, header: Json) -> int:
    """Copy the source's lines up to `at_line` (1-based, inclusive) behind a new header; returns lines copied.

    A request whose response lies beyond the cut is left out. Raises InputError where the line is not there.
    """
    entries = read_tape(source).entries
    if not 1 <= at_line <= entries[-1].line_no:
        raise InputError(f"--at {at_line}: the tape has lines 1 to {entries[-1].line_no}")
    kept = [e for e in entries[1:] if e.line_no <= at_line]
    if kept and kept[-1].type == "request":
        kept.pop()
    writer = Writer.create(target)
    writer.append("header", {"format": FORMAT, **header})
    for entry in kept:
        writer.append(entry.type, {k: v for k, v in entry.body.items() if k != "torn"})
    writer.close()
    return len(kept)
