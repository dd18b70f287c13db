"""Record, replay, resume and fork are one mechanism.

Nothing in the loop touches the world but through `perform`. While recorded entries are left, `perform`
returns the recorded response; after them a live tape performs the effect and appends request and response,
each synced before it is used. `decide` records what the loop concluded, or checks it against the record.
"""

import os
import time
from collections.abc import Callable, Iterator
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any, Self

from moeagent.memory import errors
from moeagent.memory.errors import DivergenceError, MoeagentError, TapeError
from moeagent.memory.records import canonical_json
from moeagent.memory.tape.lines import (
    FIRST_SUM,
    TIMES,
    Entry,
    EntryType,
    Json,
    TapeFile,
    encode,
    read_tape,
    torn_mark,
)
from moeagent.memory.tape.show import difference

FORMAT = 1
SIGNIFICANT_DIGITS = 9


class EndOfTapeError(TapeError):
    """A replay ran out of recorded entries: the run had not ended there."""


class Tape:
    """One run's journal with a cursor over what is already recorded."""

    def __init__(self, recorded: TapeFile | None, writer: "Writer | None") -> None:
        self._recorded = list(_replayable(recorded.entries)) if recorded else []
        self._at = 0
        self._went_on = False
        self._writer = writer
        self._idle_since = time.monotonic()
        self.header: Json = recorded.header if recorded else {}
        self.on_amend: Callable[[Json], None] = lambda amend: None

    @classmethod
    def record(cls, path: Path, header: Json) -> Self:
        """Start a new tape. Raises FileExistsError where one is already there."""
        writer = Writer.create(path)
        full = {"format": FORMAT, **header}
        writer.append("header", full)
        tape = cls(None, writer)
        tape.header = full
        return tape

    @classmethod
    def replay(cls, path: Path) -> Self:
        """Read only: never performs an effect."""
        return cls(read_tape(path), None)

    @classmethod
    def resume(cls, path: Path, marker: Json) -> Self:
        """Replay to the end, then go on recording; a marker (time, amended settings) is written first."""
        recorded = read_tape(path)
        writer = Writer.reopen(recorded)
        body = {"marker": "resume", **marker, **({"torn": torn_mark(recorded.torn)} if recorded.torn else {})}
        entry = writer.append("marker", body, newline_first=recorded.unterminated)
        return cls(TapeFile(path, (*recorded.entries, entry)), writer)

    @property
    def live(self) -> bool:
        """True when the next effect would be performed."""
        self._pass_markers()
        return self._at >= len(self._recorded) and self._writer is not None

    def waits_for_more(self) -> bool:
        """True when entries are still recorded, or a resume marker says that the run went on here."""
        self._pass_markers()
        return self._went_on or self._at < len(self._recorded)

    def perform(self, kind: str, request: Json, effect: Callable[[], Json]) -> Json:
        """The answer of the outside world to this request, recorded or performed now.

        A MoeagentError that the effect raises is recorded as its answer and raised again at replay; where it
        ended the run, a resume asks again.
        Raises DivergenceError when the recorded request differs, EndOfTapeError when a replay has no more.
        """
        asked = {"kind": kind, "request": rounded(request)}
        self._begin()
        if self._at < len(self._recorded):
            answer = self._recorded_answer(asked)
            self._pass_markers()
        else:
            answer = self._perform_now(asked, effect)
        return _unwrap(answer)

    def decide(self, kind: str, value: Json) -> None:
        """Record a conclusion of the loop, or check that it is the recorded one."""
        decided = {"kind": kind, "value": rounded(value)}
        self._begin()
        if self._at < len(self._recorded):
            self._expect("decision", decided)
            self._pass_markers()
            return
        self._live_writer(f"the decision {kind}").append("decision", decided)

    def mark(self, marker: str, reason: str) -> None:
        """Note how recording ended where the loop itself could not conclude: stopped or failed."""
        if self._writer:
            self._writer.append("marker", {"marker": marker, "reason": reason})

    def close(self) -> None:
        """Close the file; everything is already synced."""
        if self._writer:
            self._writer.close()

    def _recorded_answer(self, asked: Json) -> Json:
        entry = self._expect("request", asked)
        response = self._recorded[self._at]
        if response.type != "response":
            raise TapeError(f"tape line {response.line_no}: expected the response to line {entry.line_no}")
        self._at += 1
        return response.body

    def _perform_now(self, asked: Json, effect: Callable[[], Json]) -> Json:
        writer = self._live_writer(f"the request {asked['kind']}")
        writer.append("request", asked)
        began = time.monotonic()
        try:
            answer: Json = {"response": rounded(effect())}
        except MoeagentError as error:
            if isinstance(error, errors.Interrupted | TapeError):
                # No word of the outside world: the effect was cut, and is performed again at resume.
                raise
            answer = {"error": {"type": type(error).__name__, "message": str(error)}}
        ended = time.monotonic()
        # For the report's split of the time; nothing is decided by it.
        own, took = TIMES
        answer |= {own: round(began - self._idle_since, 4), took: round(ended - began, 4)}
        self._idle_since = ended
        writer.append("response", answer)
        return answer

    def _expect(self, type_: EntryType, body: Json) -> Entry:
        entry = self._recorded[self._at]
        if entry.type != type_ or canonical_json(entry.body) != canonical_json(body):
            raise DivergenceError(difference(entry, type_, body))
        self._at += 1
        return entry

    def _live_writer(self, what: str) -> "Writer":
        if self._writer is None:
            raise EndOfTapeError(
                f"the tape ends before {what}: the run was cut there; `moeagent resume` goes on"
            )
        return self._writer

    def _begin(self) -> None:
        self._pass_markers()
        self._went_on = False

    def _pass_markers(self) -> None:
        """What a marker changes holds for the very next step, not only from its first request on."""
        while self._at < len(self._recorded) and self._recorded[self._at].type == "marker":
            self.on_amend(self._recorded[self._at].body.get("amend", {}))
            self._at += 1
            self._went_on = True


class Writer:
    """Appends lines; each is on disk before `append` returns."""

    def __init__(self, fd: int, last_sum: str, line_no: int) -> None:
        self._fd = fd
        self._sum = last_sum
        self._line_no = line_no

    @classmethod
    def create(cls, path: Path) -> Self:
        """A new, private file."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        return cls(fd, FIRST_SUM, 0)

    @classmethod
    def reopen(cls, recorded: TapeFile) -> Self:
        """Go on after the last sound line; nothing that is there is changed. Raises TapeError."""
        try:
            fd = os.open(recorded.path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise TapeError(_unwritable(error.strerror or "I/O error")) from error
        return cls(fd, recorded.last_sum, recorded.entries[-1].line_no + (1 if recorded.torn else 0))

    def append(self, type_: EntryType, body: Json, *, newline_first: bool = False) -> Entry:
        """Write one line and sync it. Raises TapeError when the disk refuses."""
        sum_, line = encode(self._sum, type_, body)
        try:
            written = os.write(self._fd, (b"\n" if newline_first else b"") + line)
            os.fsync(self._fd)
        except OSError as error:
            raise TapeError(_unwritable(error.strerror or "I/O error")) from error
        if written != len(line) + newline_first:
            raise TapeError(_unwritable("the disk is full"))
        self._sum, self._line_no = sum_, self._line_no + 1
        return Entry(self._line_no, type_, body, sum_)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _unwritable(why: str) -> str:
    return f"cannot write the tape: {why}. It is sound so far: make room, then `moeagent resume` the run"


def _replayable(entries: tuple[Entry, ...]) -> Iterator[Entry]:
    """The entries that a replay meets: all but the header and what is asked again after a resume."""
    for i, entry in enumerate(entries):
        cut = entry.type == "request" and (i + 1 == len(entries) or entries[i + 1].type != "response")
        given_up = entry.type in ("request", "response") and not cut and _given_up(entries, i)
        if entry.type != "header" and not cut and not given_up:
            yield entry


def _given_up(entries: tuple[Entry, ...], i: int) -> bool:
    """Whether this exchange gave the error that ended the run, and the run was resumed after it."""
    response = i if entries[i].type == "response" else i + 1
    after = takewhile(lambda e: e.type == "marker", entries[response + 1 :])
    names = [e.body["marker"] for e in dropwhile(lambda e: e.body["marker"] != "failed", after)]
    return "error" in entries[response].body and "resume" in names


def _unwrap(answer: Json) -> Json:
    if "error" not in answer:
        response: Json = answer["response"]
        return response
    kind, message = answer["error"]["type"], answer["error"]["message"]
    raise getattr(errors, kind, MoeagentError)(message)


def rounded(value: Any) -> Any:
    """The value with floats at nine significant digits, so that equal requests spell equally."""
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, dict):
        return {str(k): rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return value
