"""The tape's lines: one JSON object each, chained by checksums.

A line is `<sum> <body>`; `sum` is the first 16 hex digits of SHA-256 over the previous line's sum and this
body, so that a changed, dropped or swapped line is found at that line. The body of every line is canonical
JSON. Line numbers are 1-based, as an editor shows them.
"""

import hashlib
import re
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from pydantic_core import from_json

from moeagent.memory.errors import InputError, TapeError
from moeagent.memory.records import canonical_json

Json = dict[str, Any]
EntryType = Literal["header", "request", "response", "decision", "marker"]
FIRST_SUM = "0" * 16


TYPE_AT_END = re.compile(rb'"type":"(header|request|response|marker)"}\Z')
KIND_AT_START = re.compile(rb'{"kind":"([a-z_-]+)",("type":"decision","value":)?')
"""Where canonical JSON, whose keys are sorted, has these two: inside a string every quote is escaped."""


TIMES = ("own_s", "took_s")
"""Fields of a response: seconds since the previous one, and seconds that the effect took."""


@dataclass(frozen=True)
class Entry:
    """One line of a tape; `line_no` is its place in the file.

    A line that was read is parsed when its body is first asked for: most readers need few of a long tape's.
    """

    line_no: int
    type: EntryType
    written: Json | bytes
    """The type's own fields, or the JSON of the whole line."""
    sum: str

    @cached_property
    def body(self) -> Json:
        """The type's own fields."""
        if not isinstance(self.written, bytes):
            return self.written
        body: Json = from_json(self.written, cache_strings="keys")
        del body["type"]
        return body

    @property
    def untimed(self) -> Json:
        """The body without how long it took: two runs of the same course differ in that alone."""
        return {name: value for name, value in self.body.items() if name not in TIMES}

    @property
    def kind(self) -> str:
        """What is asked or decided; empty for a line of another type."""
        if self.type not in ("request", "decision"):
            return ""
        found = KIND_AT_START.match(self.written) if isinstance(self.written, bytes) else None
        return found[1].decode() if found else str(self.body["kind"])

    def may_hold(self, name: str, values: Set[str | None]) -> bool:
        """False where no field of this name, however deep, has one of these values; true may be wrong."""
        if not isinstance(self.written, bytes):
            return True
        found = re.findall(rb'"%s":(?:null|"([^"]*)")' % name.encode(), self.written)
        return any((value.decode() or None) in values for value in found)


def checksum(previous: str, body: bytes) -> str:
    """The chained checksum of a line's body."""
    return hashlib.sha256(previous.encode() + body).hexdigest()[:16]


def encode(previous: str, type_: EntryType, body: Json) -> tuple[str, bytes]:
    """The sum of the new line, and its bytes with the newline."""
    text = canonical_json({"type": type_, **body}).encode()
    sum_ = checksum(previous, text)
    return sum_, b"%s %s\n" % (sum_.encode(), text)


def decode(line: bytes, line_no: int, previous: str) -> Entry:
    """Check one line. Raises TapeError naming the line."""
    sum_, _, text = line.partition(b" ")
    if sum_ != checksum(previous, text).encode():
        raise TapeError(f"tape line {line_no} does not match its checksum: it was changed or damaged")
    return Entry(line_no, _type_of(text), text, sum_.decode())


def _type_of(text: bytes) -> EntryType:
    if at_end := TYPE_AT_END.search(text, max(0, len(text) - 20)):
        return cast(EntryType, at_end[1].decode())
    at_start = KIND_AT_START.match(text)
    return "decision" if at_start and at_start[2] else cast(EntryType, from_json(text)["type"])


@dataclass(frozen=True)
class TapeFile:
    """Everything that a tape file holds."""

    path: Path
    entries: tuple[Entry, ...]
    torn: bytes = b""
    """A last line that was cut while it was being written; it never took effect."""
    unterminated: bool = False
    """The file does not end with a newline, so the next line must begin with one."""

    @property
    def header(self) -> Json:
        """The first line's body."""
        return self.entries[0].body

    @property
    def last_sum(self) -> str:
        """Where the chain goes on."""
        return self.entries[-1].sum


def read_tape(path: Path) -> TapeFile:
    """Read and check a whole tape.

    A torn last line is set aside. A torn line inside the file is accepted only where the next line is a
    marker that names it. Raises InputError when there is no tape, TapeError at the first bad line.
    """
    tape, problem = scan_tape(path)
    if problem is not None:
        raise _located(problem, path)
    return tape


def scan_tape(path: Path) -> tuple[TapeFile, TapeError | None]:
    """The sound lines from the tape's beginning, and what is wrong with the first bad one, if any.

    Raises InputError when there is no tape, TapeError when not even its header is sound.
    """
    lines = _read(path).split(b"\n")
    tail = lines.pop()
    entries: list[Entry] = []
    for line_no, line in enumerate(lines, start=1):
        previous = entries[-1].sum if entries else FIRST_SUM
        try:
            entries.append(decode(line, line_no, previous))
        except TapeError as error:
            if _named_torn(lines, line_no, line, previous):
                continue
            if not entries:
                raise TapeError(
                    f"{path}: {error}. Nothing after it can be trusted; campaign.toml beside it holds the "
                    "settings: `moeagent run --config` starts anew with them"
                ) from None
            return TapeFile(path, tuple(entries)), error
    if not entries or entries[0].type != "header":
        raise TapeError(f"{path} has no header line: it is not a moeagent tape, or its run never started")
    if tail and (whole := _whole(tail, len(lines) + 1, entries[-1].sum)):
        return TapeFile(path, (*entries, whole), unterminated=True), None
    return TapeFile(path, tuple(entries), tail, unterminated=bool(tail)), None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"there is no tape at {path}: `moeagent runs` lists the runs that have one"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read the tape {path}: {error.strerror}") from None


def _whole(tail: bytes, line_no: int, previous: str) -> Entry | None:
    """A last line of which only the newline was lost."""
    try:
        return decode(tail, line_no, previous)
    except TapeError:
        return None


def _named_torn(lines: list[bytes], line_no: int, line: bytes, previous: str) -> bool:
    """Whether the line after this one is a marker that says this one was torn."""
    if line_no >= len(lines):
        return False
    try:
        following = decode(lines[line_no], line_no + 1, previous)
    except TapeError:
        return False
    return following.type == "marker" and following.body.get("torn") == torn_mark(line)


def torn_mark(piece: bytes) -> str:
    """How a marker names the torn line before it."""
    return hashlib.sha256(piece).hexdigest()[:16]


def _located(error: TapeError, path: Path) -> TapeError:
    return TapeError(
        f"{path}: {error}. `moeagent doctor RUN --salvage` makes a new run of the lines before it, which "
        "`moeagent resume` goes on with; a copy of the run folder from a backup replays"
    )
