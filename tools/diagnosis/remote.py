"""Reading a log where it lies: the host selects, and at most a megabyte travels."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from moeagent.memory.errors import InputError
from moeagent.memory.records.diagnosis import Diagnosis, Stage
from moeagent.tools.diagnosis.catalogue import Catalogue, load_catalogue
from moeagent.tools.diagnosis.diagnose import diagnose_log
from moeagent.tools.diagnosis.ere import to_ere
from moeagent.tools.diagnosis.lines import parse_lines
from moeagent.tools.diagnosis.log import Log
from moeagent.tools.diagnosis.reading import read_stream
from moeagent.tools.diagnosis.scanner import STRUCTURAL
from moeagent.tools.hosts.protocol import Command, CommandResult, Host

FOLDER = Path(__file__).parent
TRAVELS = 1 << 20
"""Bytes that may travel, whatever the log's size; a smaller log travels whole."""
SCAN_S = 300.0
_LIMIT = 640_000
"""Bytes of text that the host selects; JSON adds escapes and names."""
_CHECK = (
    'if [ -d "$1" ]; then echo directory; elif [ ! -e "$1" ]; then echo missing; '
    'elif [ ! -r "$1" ]; then echo denied; else wc -c <"$1"; fi; '
    "command -v python3 >/dev/null && echo python3; "
    "echo x | LC_ALL=C grep -anE -m 1 -B 1 -A 1 x >/dev/null 2>&1 && echo grep; :"
)
Tool = Literal["grep", "python"]
_SAID = {
    "directory": "is a directory; give the log file inside it",
    "missing": "does not exist; check the path on that host",
    "denied": "may not be read by this user",
}


def diagnose_on_host(
    host: Host,
    path: str,
    *,
    engine: str | None = None,
    stage: Stage | None = None,
    alive: bool | None = None,
    catalogue: Catalogue | None = None,
) -> Diagnosis:
    """As `diagnose`, for a file of a host. Raises InputError for the file, HostError for the host."""
    catalogue = catalogue or load_catalogue()
    log = read_on_host(host, path, catalogue)
    return diagnose_log(log, engine=engine, stage=stage, alive=alive, catalogue=catalogue)


def read_on_host(host: Host, path: str, catalogue: Catalogue, *, by: Tool | None = None) -> Log:
    """The telling lines of a host's file; `by` chooses the tool, else the faster GNU grep comes first."""
    size, tools = _look(host, path)
    if size <= TRAVELS // 2:
        import io

        return read_stream(io.BytesIO(host.read(path)), f"{host.name}:{path}", catalogue)
    if (by or ("grep" if "grep" in tools or "python3" not in tools else "python")) == "python":
        result = _checked(host, path, host.run(_python_command(path), timeout_s=SCAN_S))
        return parse_scan(result.stdout)
    patterns = "\n".join(grep_patterns(catalogue)) + "\n"
    result = _checked(host, path, host.run(_grep_command(path), timeout_s=SCAN_S, stdin=patterns.encode()))
    return parse_grep(result.stdout)


def _look(host: Host, path: str) -> tuple[int, list[str]]:
    result = host.run(
        Command(("sh", "-c", _CHECK, "look", path), repeatable=True, title=f"look at {path}"), timeout_s=30.0
    )
    first, *more = result.text.split() or [""]
    if not first.isdigit():
        raise InputError(
            f"{host.name}:{path} {_SAID.get(first, 'cannot be looked at: ' + result.text[:200])}"
        )
    if first == "0":
        raise InputError(f"{host.name}:{path} is empty: nothing was logged")
    return int(first), more


def _python_command(path: str) -> Command:
    source = (FOLDER / "hostscan.py").read_text("utf-8")
    return Command(("python3", "-c", source, path, str(_LIMIT)), repeatable=True, title=f"search {path}")


def _grep_command(path: str) -> Command:
    source = (FOLDER / "hostgrep.sh").read_text("utf-8")
    return Command(
        ("sh", "-c", source, "scan", path, "600", "2500", "400"), repeatable=True, title=f"search {path}"
    )


def _checked(host: Host, path: str, result: CommandResult) -> CommandResult:
    if not result.stdout:
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(
            f"{host.name}: scanning {shlex.quote(path)} gave nothing: {said[-1] if said else 'no reason'}"
        )
    return result


def grep_patterns(catalogue: Catalogue) -> list[str]:
    """The causes, the marks of health and the shapes of unknown errors, as POSIX patterns."""
    wanted = [
        s.pattern for s in catalogue.signatures if not s.frequent and (s.kind == "cause" or s.mark == "ready")
    ]
    return [to_ere(pattern) for pattern in (*wanted, *STRUCTURAL)]


def parse_scan(output: bytes) -> Log:
    """What hostscan.py prints."""
    first, *rows = output.decode("utf-8", "replace").splitlines()
    numbered = ((row["no"], row["text"]) for row in map(json.loads, rows))
    return Log(list(parse_lines(numbered)), int(json.loads(first)["total"]))


def parse_grep(output: bytes) -> Log:
    """What hostgrep.sh prints: head and matches with numbers, the tail counted back from the total."""
    text = output.decode("utf-8", "replace")
    head, _, rest = text.partition("\ntail\n")
    tail, _, matches = rest.partition("\nmatches\n")
    total = int(head.partition("\n")[0].split()[1])
    last = tail.removesuffix("\n").split("\n")
    numbered = dict(_numbered(matches)) | dict(_numbered(head.partition("\n")[2]))
    numbered |= dict(enumerate(last, total - len(last) + 1))
    return Log(list(parse_lines(sorted(numbered.items()))), total)


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    for row in text.split("\n"):
        digits = len(row) - len(row.lstrip("0123456789"))
        if digits and row[digits : digits + 1] in (":", "-"):
            yield int(row[:digits]), row[digits + 1 :]


__all__ = ["diagnose_on_host", "grep_patterns", "parse_grep", "parse_scan", "read_on_host"]
