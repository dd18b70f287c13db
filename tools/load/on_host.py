"""A rung from the GPU host itself: the archive is put there and run by the host's own Python.

It runs detached, so that neither a broken connection nor a crash of moeagent touches it; whoever asks for the
same rung again finds it by its folder.
"""

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.processes import Process, ProcessSpec, attach, start_detached, stop, wait_for_end
from moeagent.tools.hosts.protocol import Command, Host
from moeagent.tools.hosts.script import ask
from moeagent.tools.load.bundle import loadgen_archive
from moeagent.tools.load.job import build_job
from moeagent.tools.load.runner import GRACE_S, outcome_of, read_result
from moeagent.tools.load.spec import RungOutcome, RungSpec, Target

OLD_PYTHON = "import sys; sys.exit(sys.version_info < (3, 9))"
SHOWN = 400
"""Characters of the host's message."""
SLICE_S = 5
"""How long the host waits for the end before it tells that it is still under way."""
_RUN = 'exec "$1" "$2" <"$3" >"$4"'


def run_rung_on_host(
    host: Host,
    target: Target,
    spec: RungSpec,
    *,
    folder: str,
    tag: str,
    python: str = "python3",
    deadline_s: float = 3600.0,
    on_wait: Callable[[], None] = lambda: None,
) -> RungOutcome:
    """As `run_rung`, but from `host`, in a folder below `folder`; the target's URL is as the host sees it.

    Its processes carry `tag`. `on_wait` is called every few seconds; what it raises ends the load. Raises
    HostError when the host has no Python 3.9 or the generator cannot run there, RemoteError when the host
    stays away: the load then goes on.
    """
    job = build_job(target, spec, deadline_s=deadline_s)
    place = f"{folder}/load-{_fingerprint(job)}"
    process = attach(host, place) or _start(host, job, place, tag, python)
    try:
        _wait(host, process, deadline_s + 2 * GRACE_S, on_wait)
    except RemoteError:
        raise
    except BaseException:
        with suppress(HostError):
            stop(host, process, grace_s=0.0)
        raise
    try:
        result = _result(host, process)
    finally:
        ask(host, Command(("rm", "-rf", place), repeatable=True), f"removing {place}")
    return outcome_of(result, spec, job)


def _fingerprint(job: dict[str, Any]) -> str:
    text = json.dumps({k: v for k, v in job.items() if k != "headers"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _start(host: Host, job: dict[str, Any], place: str, tag: str, python: str) -> Process:
    if not host.run(Command((python, "-c", OLD_PYTHON), repeatable=True), timeout_s=30).ok:
        raise HostError(
            f"{host.name}: {python} is missing or older than 3.9: measure from this machine instead"
        )
    host.put(f"{place}/loadgen.pyz", loadgen_archive())
    host.put(f"{place}/job.json", json.dumps(job).encode())
    files = (f"{place}/{name}" for name in ("loadgen.pyz", "job.json", "result"))
    return start_detached(host, ProcessSpec(Command(("sh", "-c", _RUN, "sh", python, *files)), place, tag))


def _wait(host: Host, process: Process, limit_s: float, on_wait: Callable[[], None]) -> None:
    deadline = time.monotonic() + limit_s
    on_wait()
    while wait_for_end(host, process, SLICE_S).alive:
        on_wait()
        if time.monotonic() > deadline:
            raise HostError(f"{host.name}: the load generator did not end in {limit_s:g} s, stopped")


def _result(host: Host, process: Process) -> dict[str, Any]:
    printed = host.read(f"{process.folder}/result")
    if b'"result"' not in printed and b'"error"' not in printed:
        said = host.read(process.log).decode("utf-8", "replace")[-SHOWN:]
        raise HostError(f"{host.name}: the load generator ended without a result: {said or 'it was killed'}")
    return read_result(printed.splitlines(), None)
