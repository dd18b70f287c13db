"""Reading a log of any size in bounded memory: head, tail, and the surroundings of the lines that count."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from moeagent.tools.diagnosis.catalogue import Catalogue, Signature
from moeagent.tools.diagnosis.lines import parse_lines
from moeagent.tools.diagnosis.log import Log
from moeagent.tools.diagnosis.matching import pattern_set

WHOLE = 1 << 20
"""Bytes up to which every line is kept."""
CHUNK = 4 << 20
"""Bytes searched at a time."""
HEAD, TAIL = 2000, 4000
"""Lines kept at both ends: settings stand at the head, deaths at the tail."""
BEFORE, AFTER = 40, 120
"""Lines kept around the first hits of a pattern: a traceback is at most about a hundred lines."""
WIDE, CAP = 5, 60
"""Hits of one pattern kept with full surroundings, and kept at all; then it is no longer searched."""
NARROW_BEFORE, NARROW_AFTER = 2, 10
LONGEST = 16 << 10
"""Bytes kept of one line."""
MOST_LINES = 40_000
AUTOMATON = 64 << 20
"""Bytes for the states of the search. It forgets states beyond, and below what one line needs (24 MiB did not
hold 420 patterns) it falls back to a search that is a hundred times slower."""
STRUCTURAL = (
    r"Traceback \(most recent call last\)",
    r"(?:Error|Exception|OutOfResources)(?::|\(|$)",
    r"\b(?:ERROR|CRITICAL|FATAL)\b",
    r"\b(?:fatal|panic|[Aa]bort(?:ed|ing)|[Aa]ssert(?:ion)?)\b",
)
"""What an unknown failure looks like: found in the middle of a huge log although no signature knows it."""
_ANCHOR = re.compile(r"(^|\(\?:|\(|\|)\^")


def searched(catalogue: Catalogue) -> list[Signature]:
    """Signatures worth finding anywhere in a huge log: not what is printed for every request."""
    return [s for s in catalogue.signatures if not s.frequent and (s.kind != "benign" or s.hides_line)]


def search_patterns(catalogue: Catalogue) -> tuple[str, ...]:
    """The patterns of a scan over raw lines; anchors are dropped because raw lines carry prefixes."""
    patterns = (*(signature.pattern for signature in searched(catalogue)), *STRUCTURAL)
    return tuple(_ANCHOR.sub(r"\1", pattern) for pattern in patterns)


class Scanner:
    """Takes a log in pieces, keeps what the diagnosis needs; `log` may be asked at any time (follow mode)."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._patterns = search_patterns(catalogue)
        self._set = pattern_set(self._patterns)
        self._hits = [0] * len(self._patterns)
        self._filter = _alternation(self._patterns)
        self._pending = bytearray()
        self._searching = False
        self._kept: list[tuple[int, bytes]] = []
        self._last: bytes = b""
        self._next_no = 1
        self._keep_until = HEAD

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the log."""
        self._pending += data
        while len(self._pending) >= CHUNK:
            cut = self._pending.rfind(b"\n", 0, CHUNK) + 1
            if cut == 0:
                cut = self._pending.find(b"\n") + 1
            if cut == 0:
                _shorten(self._pending)
                return
            self._search(bytes(self._pending[:cut]))
            del self._pending[:cut]

    def log(self) -> Log:
        """What was kept so far, as a log."""
        if not self._searching and len(self._pending) <= WHOLE:
            texts = _split(bytes(self._pending))
            return Log(list(parse_lines(enumerate((_text(one) for one in texts), 1))), len(texts))
        kept, next_no, last = list(self._kept), self._next_no, self._last
        rest = bytes(self._pending)
        if len(rest) > WHOLE:
            probe = self._fork()
            probe._search(rest)
            kept, next_no, last, rest = probe._kept, probe._next_no, probe._last, b""
        tail = _split(last[-2 * CHUNK :])[-TAIL:] + _split(rest)
        total = next_no - 1 + len(_split(rest))
        first = total - len(tail) + 1
        numbered = [(no, text) for no, text in kept if no < first] + list(enumerate(tail, first))
        lines = list(parse_lines((no, _text(text)) for no, text in numbered))
        return Log(lines, total)

    def _fork(self) -> "Scanner":
        twin = object.__new__(Scanner)
        twin.__dict__.update(self.__dict__)
        twin._kept, twin._hits = list(self._kept), list(self._hits)
        return twin

    def _search(self, chunk: bytes) -> None:
        self._searching = True
        no, counted, position = self._next_no, 0, 0
        cursor_no, cursor = no, 0
        while (match := self._filter.search(chunk, position)) is not None:
            start = chunk.rfind(b"\n", 0, match.start()) + 1
            end = chunk.find(b"\n", match.start())
            end = len(chunk) if end < 0 else end
            no += chunk.count(b"\n", counted, start)
            counted, position = start, end + 1
            before, after = self._wanted(chunk[start:end])
            if after:
                if no > self._keep_until:
                    cursor_no, cursor = self._keep(chunk, cursor_no, cursor)
                    cursor_no, cursor = _step_back(chunk, no, start, before, cursor_no, cursor)
                self._keep_until = max(self._keep_until, no + after)
            if position >= len(chunk):
                break
        self._keep(chunk, cursor_no, cursor)
        self._next_no = self._next_no + chunk.count(b"\n")
        self._last = (self._last + chunk)[-CHUNK - (CHUNK >> 2) :] if len(chunk) < CHUNK // 2 else chunk

    def _wanted(self, line: bytes) -> tuple[int, int]:
        """How many lines to keep around a hit; both 0 when its patterns were seen often enough."""
        indices = self._set.Match(line[:LONGEST]) or ()
        for index in indices:
            self._hits[index] += 1
        if any(self._hits[index] == CAP for index in indices):
            self._filter = _alternation(
                tuple(p for p, hits in zip(self._patterns, self._hits, strict=True) if hits < CAP)
            )
        fewest = min((self._hits[index] for index in indices), default=CAP + 1)
        if fewest > CAP or len(self._kept) > MOST_LINES:
            return 0, 0
        return (BEFORE, AFTER) if fewest <= WIDE else (NARROW_BEFORE, NARROW_AFTER)

    def _keep(self, chunk: bytes, no: int, at: int) -> tuple[int, int]:
        """Keep lines from the cursor up to the wanted one; returns the cursor behind them."""
        while no <= self._keep_until and at < len(chunk):
            end = chunk.find(b"\n", at)
            end = len(chunk) if end < 0 else end
            self._kept.append((no, chunk[at : min(end, at + LONGEST)]))
            no, at = no + 1, end + 1
        return no, at


def _step_back(chunk: bytes, no: int, start: int, before: int, floor_no: int, floor: int) -> tuple[int, int]:
    """The cursor `before` lines above line `no`, but not above what was kept already."""
    while before > 0 and start > floor and no > floor_no:
        start = chunk.rfind(b"\n", 0, start - 1) + 1
        no, before = no - 1, before - 1
    return no, start


@lru_cache(maxsize=2)
def _alternation(patterns: tuple[str, ...]) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = AUTOMATON
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    joined = "|".join(f"(?:{pattern})" for pattern in patterns) or r"[^\x00-\xff]"
    return re2.compile(f"(?m){joined}".encode(), options)


def _shorten(line: bytearray) -> None:
    """Drop the middle of an endless line: of a redrawn progress bar only the last state counts."""
    del line[LONGEST : len(line) - LONGEST]


def _split(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def _text(line: bytes) -> str:
    return line[:LONGEST].decode("utf-8", "replace")


def feed_all(scanner: Scanner, blocks: Iterable[bytes]) -> Log:
    """Feed every block and return the log."""
    for block in blocks:
        scanner.feed(block)
    return scanner.log()
