"""Python exceptions in a log: the line that names one, its frames, and the chain to the innermost cause."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moeagent.tools.diagnosis.lines import Line
from moeagent.tools.diagnosis.log import Log

_EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout|Failure|Unsupported|NotFound"
    r"|Crash|Closed|Disconnected|TimedOut)|OutOfResources|Exception)|(?:[A-Za-z_]\w*\.)+exc\.[A-Z]\w*)"
    r"(?:: ?(?P<message>.*))?$"
)
_REPR = re.compile(r"(?P<type>[A-Z]\w*(?:Error|Exception))\(['\"](?P<message>.*)['\"]\)")
_FRAME = re.compile(r"\s+File \"[^\"]+\", line \d+")
_CARETS = re.compile(r"\s+[~^]+\s*")
_TRACEBACK = "Traceback (most recent call last)"
_DIRECT = "The above exception was the direct cause of the following exception"
_DURING = "During handling of the above exception, another exception occurred"
_MAX_WALK = 400
"""Lines walked upwards for frames and causes; deeper recursion than this repeats the same frames."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as printed at the end of a traceback."""

    line: Line
    type: str
    message: str
    frames: tuple[str, ...] = ()
    """The `File ...` lines and their code, outermost first."""
    cause_no: int | None = None
    """Line number of the exception that this one followed."""
    direct: bool = False
    """True for `raise ... from`: the author said that the earlier one is the cause."""
    continued: tuple[str, ...] = ()
    """Further lines of the message."""
    asserted: Line | None = None
    """The source line of a bare `assert`, which says more than the empty exception below it."""


def find_exceptions(log: Log) -> list[Raised]:
    """All exceptions of the log, in file order, with their frames and chain links."""
    streams = assign_streams(log.lines)
    by_stream: dict[str, list[Line]] = {}
    found: list[Raised] = []
    last: dict[str, Raised] = {}
    for line, stream in zip(log.lines, streams, strict=True):
        earlier = by_stream.setdefault(stream, [])
        match = _EXCEPTION.match(line.body) or (_REPR.match(line.body) if line.level == "ERROR" else None)
        if match is not None and " " not in match["type"]:
            raised = _raised(line, match, earlier, last.get(stream))
            found.append(raised)
            last[stream] = raised
        earlier.append(line)
        if len(earlier) > 2 * _MAX_WALK:
            del earlier[:_MAX_WALK]
    return [_with_continuation(raised, log) for raised in found]


def frame_lines(log: Log) -> frozenset[int]:
    """Numbers of the lines that are stack frames or their source: what they say is code, not a message."""
    found: set[int] = set()
    after_frame: dict[str, bool] = {}
    for line, stream in zip(log.lines, assign_streams(log.lines), strict=True):
        head = _FRAME.match(line.body) is not None
        code = after_frame.get(stream, False) and line.body.startswith("  ") and not head
        if head or code or _CARETS.fullmatch(line.body):
            found.add(line.no)
        after_frame[stream] = head
    return frozenset(found)


def assign_streams(lines: Sequence[Line]) -> list[str]:
    """The stream of each line; a line without any prefix continues the line above it."""
    streams: list[str] = []
    current = ""
    for line in lines:
        if line.stream or line.when or line.level:
            current = line.stream
        streams.append(current)
    return streams


def _raised(line: Line, match: re.Match[str], earlier: Sequence[Line], previous: Raised | None) -> Raised:
    frames: list[str] = []
    cause_no, direct = None, False
    for above in reversed(earlier[-_MAX_WALK:]):
        body = above.body
        if _DIRECT in body or _DURING in body:
            if previous is not None and previous.line.no < above.no:
                cause_no, direct = previous.line.no, _DIRECT in body
            break
        if _TRACEBACK in body:
            frames.append(body)
        elif body.startswith((" ", "\t")) or not body.strip():
            if frames and _TRACEBACK in frames[-1] and body.strip():
                break
            frames.append(body)
        else:
            break
    ordered = tuple(frame for frame in reversed(frames) if frame.strip() and _TRACEBACK not in frame)
    message = (match["message"] or "").strip()
    bare = match["type"] == "AssertionError" and not message
    asserted = next(
        (above for above in reversed(earlier[-4:]) if above.body.strip().startswith("assert ")), None
    )
    return Raised(
        line,
        match["type"].rsplit(".", 1)[-1],
        message,
        ordered,
        cause_no,
        direct,
        asserted=asserted if bare else None,
    )


def _with_continuation(raised: Raised, log: Log) -> Raised:
    rest: list[str] = []
    for line in log.downwards(raised.line.no):
        if len(rest) >= 12 or line.no != raised.line.no + len(rest) + 1 or not line.body.strip():
            break
        if (
            line.stream != raised.line.stream
            or line.level != raised.line.level
            or _EXCEPTION.match(line.body)
        ):
            break
        rest.append(line.body)
    return replace(raised, continued=tuple(rest))
