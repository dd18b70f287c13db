"""One log line taken apart: who printed it (rank, process), at what level, when, and the message."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b\x0e-\x1f\x7f]"
)
"""Terminal sequences and control characters: never shown again, since a log may try to drive the terminal."""

_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
_LEVEL = r"TRACE|DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL"
_PREFIXES = (
    # docker compose and similar: `vllm-1  | `
    ("a", r"(?P<service>[A-Za-z][\w.-]{0,40})\s{0,12}\|\s"),
    # Kubernetes CRI: `2026-01-01T00:00:00.0Z stderr F `
    ("0", rf"(?P<when>{_STAMP})(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] "),
    # SGLang: `[2026-02-20 10:00:00 TP0 EP0] `, older `[10:00:00 TP0] `
    ("[", rf"\[(?P<when>{_STAMP}|\d\d:\d\d:\d\d)(?P<tags>(?: [A-Z]{{2,3}}\d+)*)\] ?"),
    # Ray: `[2024-03-22 14:41:12,310 E 71 71] (raylet) `
    ("[", rf"\[(?P<when>{_STAMP}) (?P<letter>[DIWEF]) \d+ \d+\] ?"),
    # Python logging and ISO stamps
    ("0[", rf"\[?(?P<when>{_STAMP})(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]+(?:-[ \t]+)?"),
    # processes: `(EngineCore_DP0 pid=211) `, `(VllmWorker rank=5 pid=948) `, `(raylet) `
    (
        "(",
        r"\((?P<process>[A-Za-z]\w*(?:[ _-]\w+)?(?: rank=\d+)?)"
        r"(?:,? (?:pid=(?P<pid>\d+)|ip=[^)]{1,60}))*\) ?",
    ),
    # vLLM: `ERROR 04-17 20:04:14 [core.py:1019] `, older without brackets
    ("a", rf"(?P<level>{_LEVEL}) (?P<when>\d\d-\d\d \d\d:\d\d:\d\d) (?:\[[^\]]{{1,80}}\]|[\w./-]+:\d+\]) ?"),
    # torch C++: `[rank1]:[E623 09:21:42.118 ProcessGroupNCCL.cpp:690] `, `[W ProcessGroup.cpp:1] `
    ("[", r"\[rank(?P<rank>\d+)\]:? ?"),
    ("[", r"\[(?P<letter>[DIWEF])(?:\d{3,4} (?P<when>\d\d:\d\d:\d\d\.\d+))? [\w.]+:\d+\] ?"),
    # TensorRT-LLM: `[04/17/2026-20:11:02] [TRT-LLM] [E] `
    (
        "[",
        r"\[\d\d/\d\d/\d{4}-(?P<when>\d\d:\d\d:\d\d)\] (?:\[TRT-LLM\] )?(?:\[RANK \d+\] )?"
        r"(?:\[(?P<letter>[DIWEF])\] )?",
    ),
    # NCCL: `node0:19:19 [0] NCCL INFO `, whose last words belong to the message
    ("a0", r"[\w.-]+:\d+:\d+ \[\d+\] (?=NCCL (?P<level>INFO|WARN))"),
    # glog: `E0421 12:00:00.000000 123 file.cc:10] `
    ("a", r"(?P<letter>[DIWEF])\d{4} (?P<when>\d\d:\d\d:\d\d\.\d+)\s+\d+ [\w./-]+:\d+\] ?"),
    # llama.cpp: `0.00.065.444 E ` (minutes.seconds.milliseconds.microseconds)
    ("0", r"(?P<since>\d+\.\d\d\.\d{3}\.\d{3}) (?P<letter>[DIWE]) "),
    # ollama: `time=2026-08-30T09:12:01.114Z level=INFO source=server.go:1 msg=`
    ("a", rf"time=\"?(?P<when>{_STAMP})\S* level=(?P<level>{_LEVEL})(?: source=\S+)?(?: msg=)?"),
    # syslog and dmesg
    ("[<", r"(?:<\d+>)?\[\s*\d+\.\d{6}\] "),
    ("a", r"(?P<month>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) [\w.-]+ [\w./-]+(?:\[\d+\])?: "),
    # a program that relays the server's output: its own level says nothing about the line
    ("a", rf"[\w.]+ - (?:{_LEVEL}) - "),
    # pytest
    ("a", r"E {3,}"),
    # older SGLang, torchrun and mpirun ranks
    ("[", r"\[gpu(?:_id)?=(?P<gpu>\d+)\] ?"),
    ("[", r"\[(?:default)?(?P<local>\d+)\]: ?"),
    ("[", r"\[\d+,(?P<mpi>\d+)\]<std(?:err|out)>: ?"),
    # Python logging: `ERROR:root:`, uvicorn `INFO:     `, loguru `| ERROR    | `
    ("a", rf"(?P<level>{_LEVEL}):(?:[\w.]+:)? *(?=\S|$)"),
    ("a|", rf"\|? ?(?P<level>{_LEVEL}) +(?:\| )?(?:\[?[\w./-]+:\d+\]? ?(?:-- |\] ?|- )?)?"),
)
"""What may stand before a message, each with the characters that it can begin with: `a` for a letter, `0` for
a digit, otherwise the character itself."""
_BY_FIRST = {
    key: tuple(re.compile(pattern) for keys, pattern in _PREFIXES if key in keys)
    for key in ("a", "0", "[", "(", "<", "|")
}
_RANKLESS = re.compile(r"\w*[Ww]orker(?:Process|Wrapper)?")
"""Worker processes that are told apart by their pid only."""
_MAX_PREFIXES = 6
_LETTERS = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}
_FORMS = (
    ("", "%Y-%m-%d %H:%M:%S", 19),
    ("2024-", "%Y-%m-%d %H:%M:%S", 14),
    ("2024-01-01 ", "%Y-%m-%d %H:%M:%S", 8),
)
"""What to put before a stamp that has no year or no date, and how many of its characters count."""
_RANK_GROUPS = (("rank", "rank"), ("gpu", "gpu"), ("local", "rank"), ("mpi", "rank"))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log; `no` is its 1-based number in the file."""

    no: int
    text: str
    """As printed, without colour codes and control characters."""
    body: str
    """The message after all prefixes; leading blanks of stack frames are kept."""
    stream: str
    """Who printed it: `TP3 EP3`, `Worker_TP2`, `EngineCore`, or empty."""
    level: str
    when: str
    """The time stamp as printed, or empty; see `seconds`."""

    @property
    def quiet(self) -> bool:
        """True for a level below ERROR: the program itself did not call it an error."""
        return self.level in ("TRACE", "DEBUG", "INFO", "WARNING", "WARN")


def clean(text: str) -> str:
    """The visible text of a line: no terminal sequences, and of a redrawn progress bar the last state."""
    text = text.rstrip("\r\n")
    if "\r" in text:
        text = next((part for part in reversed(text.split("\r")) if part.strip()), "")
    if text.isprintable():
        return text
    return ANSI.sub("", text)


def parse_line(no: int, text: str) -> Line:
    """Take the prefixes off one cleaned line."""
    at, stream, level, when = 0, "", "", ""
    for _ in range(_MAX_PREFIXES):
        match = next((m for p in _candidates(text, at) if (m := p.match(text, at)) and m.end() > at), None)
        if match is None:
            break
        found = match.groupdict()
        at = match.end()
        stream = _stream(found) or stream
        level = found.get("level") or _LETTERS.get(found.get("letter") or "", "") or level
        when = found.get("when") or found.get("since") or when
    return Line(no, text, text[at:], stream, level, when)


def _candidates(text: str, at: int) -> tuple[re.Pattern[str], ...]:
    first = text[at : at + 1]
    return _BY_FIRST.get("a" if first.isalpha() or first == "_" else "0" if first.isdigit() else first, ())


def parse_lines(texts: Iterable[tuple[int, str]]) -> Iterator[Line]:
    """Parse numbered raw lines."""
    return (parse_line(no, clean(text)) for no, text in texts)


def _stream(found: dict[str, str | None]) -> str:
    if tags := (found.get("tags") or "").strip():
        return tags
    if process := found.get("process"):
        return f"{process} {pid}" if (pid := found.get("pid")) and _RANKLESS.fullmatch(process) else process
    for group, label in _RANK_GROUPS:
        if (number := found.get(group)) is not None:
            return f"{label}{number}"
    return ""


def seconds(when: str) -> float | None:
    """The stamp in seconds on its own scale (a day, a year, or since start); None when it cannot be read."""
    if since := re.fullmatch(r"(\d+)\.(\d\d)\.(\d{3})\.\d{3}", when):
        return int(since[1]) * 60 + int(since[2]) + int(since[3]) / 1e3
    text = when.replace("T", " ")
    for missing, form, length in _FORMS:
        try:
            return datetime.strptime(f"{missing}{text[:length]} +0000", f"{form} %z").timestamp()
        except ValueError:
            continue
    return None
