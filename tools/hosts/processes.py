"""Long work on a host: started detached, found again by files and tag, stopped whole.

A process is known by its tag, its start time and its user, never by its pid or its command line alone.
It does not depend on moeagent or on the connection that started it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, ValidationError

from moeagent.memory.errors import HostError, InputError
from moeagent.memory.records.base import Record
from moeagent.tools.hosts.clock import Clock, SystemClock
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.script import ask, said, script

TAG_VARIABLE = "MOEAGENT_TAG"
FIRM_GRACE_S = 10.0
"""How long a killed process may take to vanish: the kernel frees tens of GB of GPU memory in that time."""
_START_S = 60.0
_POLL_S = 0.2
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


def check_tag(tag: str) -> str:
    """The tag, or ValueError when it could not be told from other text."""
    if not _TAG.fullmatch(tag):
        raise ValueError(f"tag {tag!r}: use letters, digits and . _ / -")
    return tag


Tag = Annotated[str, AfterValidator(check_tag)]


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What to start. Raises InputError for a relative folder or a tag with other characters."""

    command: Command
    folder: str
    """Absolute path on the host, one per process; made if missing."""
    tag: str
    """RUN/LAUNCH; every process that descends from this one carries it in MOEAGENT_TAG."""

    def __post_init__(self) -> None:
        if not self.folder.startswith("/") or "\n" in self.folder:
            raise InputError(f"folder {self.folder!r} on the host: give an absolute path")
        try:
            check_tag(self.tag)
        except ValueError as error:
            raise InputError(str(error)) from error


class Process(Record):
    """A detached process as its host knows it."""

    tag: Tag
    folder: str
    pid: int
    start_time: int
    """Clock ticks since the host booted (field 22 of /proc/PID/stat)."""
    session: int
    """Pid of the session's leader, which writes the exit code down."""
    session_start: int
    boot_id: str

    @property
    def log(self) -> str:
        """Path of its output on the host."""
        return f"{self.folder}/server.log"


class ProcessState(Record):
    """What a look at a process showed."""

    alive: bool
    exit_code: int | None = None
    """128 + n for signal n; None while it runs, and when nobody was left to write it down."""
    rebooted: bool = False
    """The host was started anew since: nothing of it can be left."""


class StopReport(Record):
    """How a stop went. Only `gone` means that nothing of it is left."""

    tag: str
    gone: bool
    signals: tuple[str, ...] = ()
    """Sent, in this order; empty when nothing was running."""
    remaining: tuple[int, ...] = ()
    exit_code: int | None = None


def start_detached(host: Host, spec: ProcessSpec) -> Process:
    """Start a process in its own session and return when it has become the command.

    Asked again for the same folder and tag it returns the same process, so a start that was cut off by a
    broken connection is simply repeated. Raises HostError when it cannot start.
    """
    env = {
        **spec.command.env,
        TAG_VARIABLE: spec.tag,
        "MOEAGENT_FOLDER": spec.folder,
        # Python's setproctitle otherwise writes over the environment in which the tag is looked for.
        "SPT_NOENV": "1",
    }
    starter = script("processes", "start", spec.folder, *spec.command.argv, env=env, cwd=spec.command.cwd)
    result = ask(host, starter, f"starting a process in {spec.folder}", timeout_s=_START_S)
    return _parse_process(result.text, spec.folder)


def attach(host: Host, folder: str) -> Process | None:
    """The process that was started in this folder, running or not; None when none was."""
    result = host.run(Command(("cat", f"{folder}/process"), repeatable=True), timeout_s=_START_S)
    if not result.ok and b"No such file" in result.stderr:
        return None
    if not result.ok:
        raise HostError(f"{host.name}: cannot read {folder}/process: {said(result)}")
    return _parse_process(result.text, folder)


def probe(host: Host, process: Process) -> ProcessState:
    """Look whether it is still that very process, and how it ended. Does not wait."""
    arguments = (process.folder, *_identity(process))
    result = ask(host, script("processes", "probe", *arguments), f"looking at process {process.pid}")
    return _parse_state(result.text)


def wait_for_end(host: Host, process: Process, wait_s: int) -> ProcessState:
    """As `probe`, once the process has ended or `wait_s` have passed; the host does the waiting."""
    command = script("processes", "end_of", str(wait_s), process.folder, *_identity(process))
    result = ask(host, command, f"waiting for process {process.pid}", timeout_s=_START_S + wait_s)
    return _parse_state(result.text)


def _parse_state(text: str) -> ProcessState:
    values = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    code = values.get("exit_code", "").strip()
    return ProcessState(
        alive=values.get("alive") == "1",
        exit_code=int(code) if code.isdigit() else None,
        rebooted="rebooted" in values,
    )


def members(host: Host, process: Process) -> tuple[int, ...]:
    """Pids of all living processes that belong to it: by tag, session or descent, and of our user."""
    result = ask(
        host, script("processes", "ours", process.tag, *_identity(process)), f"listing {process.tag}"
    )
    return tuple(sorted(int(line.split()[0]) for line in result.text.splitlines()))


def stop(host: Host, process: Process, *, grace_s: float, clock: Clock | None = None) -> StopReport:
    """Ask politely (SIGTERM), wait `grace_s`, then kill, and look whether everything is gone.

    What is not ours is never signalled. The leader of the session is killed last, so that it can still
    write the exit code down.
    """
    clock = clock or SystemClock()
    left = members(host, process)
    signals: list[str] = []
    for name, spared, wait_s in (
        ("TERM", 0, grace_s),
        ("KILL", process.session, FIRM_GRACE_S),
        ("KILL", 0, FIRM_GRACE_S),
    ):
        if not left:
            break
        arguments = (name, str(spared), process.tag, *_identity(process))
        ask(host, script("processes", "signal", *arguments), f"stopping {process.tag}")
        signals.append(f"SIG{name}")
        left = _wait_gone(host, process, wait_s, clock)
    return StopReport(
        tag=process.tag,
        gone=not left,
        signals=tuple(signals),
        remaining=left,
        exit_code=probe(host, process).exit_code,
    )


def find_tagged(host: Host, tag_prefix: str) -> list[Process]:
    """Every tagged process of our user whose tag starts with the prefix, one for each tag and folder."""
    result = ask(host, script("processes", "find", tag_prefix), f"looking for {tag_prefix}*")
    found: dict[tuple[str, str], list[Process]] = {}
    for line in result.text.splitlines():
        process = _parse_found(line)
        if process is not None:
            found.setdefault((process.tag, process.folder), []).append(process)
    return [_recorded(host, group) for _, group in sorted(found.items())]


def reap(host: Host, processes: Iterable[Process], *, grace_s: float) -> list[StopReport]:
    """Stop leftovers that `find_tagged` listed."""
    return [stop(host, process, grace_s=grace_s) for process in processes]


def _identity(process: Process) -> tuple[str, ...]:
    numbers = (process.pid, process.start_time, process.session, process.session_start)
    return (*map(str, numbers), process.boot_id)


def _wait_gone(host: Host, process: Process, wait_s: float, clock: Clock) -> tuple[int, ...]:
    deadline = clock.now() + wait_s
    while (left := members(host, process)) and clock.now() < deadline:
        clock.sleep(_POLL_S)
    return left


def _parse_process(text: str, folder: str) -> Process:
    values = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    try:
        return Process.model_validate({**values, "folder": folder})
    except ValidationError as error:
        raise HostError(
            f"{folder}/process is damaged ({error.error_count()} wrong fields): stop what it stands for "
            "with `moeagent reap`"
        ) from error


def _parse_found(line: str) -> Process | None:
    """One line of `find`: pid, start, session, boot, tag, folder. None for a line that is none of ours."""
    parts = line.split(" ", 5)
    if len(parts) != 6 or not all(p.isdigit() for p in parts[:3]) or not _TAG.fullmatch(parts[4]):
        return None
    pid, start, session = map(int, parts[:3])
    return Process(
        tag=parts[4],
        folder=parts[5],
        pid=pid,
        start_time=start,
        session=session,
        session_start=start if session == pid else 0,
        boot_id=parts[3],
    )


def _recorded(host: Host, group: list[Process]) -> Process:
    """The process of the folder's file where it fits the tag, else the oldest that was found."""
    oldest = min(group, key=lambda p: (p.start_time, p.pid))
    if not oldest.folder.startswith("/"):
        return oldest
    recorded = attach(host, oldest.folder)
    return recorded if recorded is not None and recorded.tag == oldest.tag else oldest
