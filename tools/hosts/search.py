"""Search a file where it lies: only the selected lines travel."""

import re
from collections.abc import Iterable

from pydantic import PositiveInt

from moeagent.memory.errors import HostError, InputError
from moeagent.memory.records.base import Record
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.script import said, script

_SEARCH_S = 120.0
_LINE = re.compile(r"(\d+)([:-])(.*)", re.DOTALL)


class Line(Record):
    """One line of the file."""

    number: PositiveInt
    text: str
    matched: bool
    """False for a line of context."""


class SearchResult(Record):
    """Lines in the order of the file."""

    lines: tuple[Line, ...]
    truncated: bool
    """True when there was more than was asked for."""


def search(
    host: Host,
    path: str,
    patterns: Iterable[str],
    *,
    exclude: Iterable[str] = (),
    context: int = 0,
    max_matches: int = 200,
    max_line_bytes: int = 2_000,
    max_bytes: int = 256 * 1024,
) -> SearchResult:
    """The lines that one of the patterns matches and none of `exclude`, with `context` lines around.

    Patterns are POSIX extended regular expressions. Lines longer than `max_line_bytes` are cut. Raises
    HostError when the file cannot be read, InputError for a pattern that is not one line.
    """
    wanted, unwanted = "\n".join(_checked(patterns)), "\n".join(_checked(exclude))
    if not wanted:
        raise InputError(f"searching {path}: give at least one pattern")
    limits = (context, max_matches + 1, max_line_bytes, max_bytes + 1)
    result = host.run(
        script("search", path, wanted, unwanted, *(str(n) for n in limits)), timeout_s=_SEARCH_S
    )
    if not result.ok:
        raise HostError(f"{host.name}: cannot search {path}: {said(result)}")
    return parse_lines(result.stdout, max_matches=max_matches, max_bytes=max_bytes)


def parse_lines(output: bytes, *, max_matches: int, max_bytes: int) -> SearchResult:
    """What `grep -n` prints, as lines; what lies behind one of the two limits is cut off."""
    truncated = len(output) > max_bytes
    if truncated:
        output = output[: output.rfind(b"\n", 0, max_bytes) + 1]
    kept: list[Line] = []
    matches = 0
    for found in map(_LINE.fullmatch, output.decode("utf-8", "replace").split("\n")):
        if found is None:
            continue
        matches += found[2] == ":"
        if matches > max_matches:
            return SearchResult(lines=tuple(kept), truncated=True)
        kept.append(Line(number=int(found[1]), text=found[3], matched=found[2] == ":"))
    return SearchResult(lines=tuple(kept), truncated=truncated)


def _checked(patterns: Iterable[str]) -> list[str]:
    checked = list(patterns)
    for pattern in checked:
        if not pattern or "\n" in pattern:
            raise InputError(f"search pattern {pattern!r}: give one line of text")
    return checked
