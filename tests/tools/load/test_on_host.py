"""The archive on a host with nothing installed, by that host's own Python."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from bench.loadgen.scripted import HANG, ScriptedServer, completion, events

from moeagent.memory.errors import HostError, Interrupted, RemoteError
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import find_tagged, reap
from moeagent.tools.hosts.protocol import Command, CommandResult
from moeagent.tools.load import RandomPrompts, RungSpec, Target
from moeagent.tools.load.bundle import loadgen_archive
from moeagent.tools.load.on_host import run_rung_on_host

SPEC = RungSpec(concurrency=3, requests=9, output_len=6, random=RandomPrompts(words=5), warmup=None)
SYSTEM_PYTHON = "/usr/bin/python3" if shutil.which("/usr/bin/python3") else sys.executable


def test_a_rung_from_the_host_has_the_same_figures(tmp_path: Path) -> None:
    with ScriptedServer(lambda r: events(*completion(r.body["max_tokens"]))) as server:
        target = Target(base_url=server.url, api="openai-completions")
        outcome = run_rung_on_host(
            LocalHost(), target, SPEC, folder=str(tmp_path), tag="t/L1/load", python=SYSTEM_PYTHON
        )

    assert (outcome.rung.completed, outcome.rung.output_tokens) == (9, 54)
    assert list(tmp_path.iterdir()) == []


class Without(LocalHost):
    """A host whose connection is lost for good as soon as a verb of the process script is to run."""

    def __init__(self, verb: str) -> None:
        super().__init__()
        self._verb = verb

    def run(self, command: Command, *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        if self._verb in command.argv:
            raise RemoteError(f"the connection broke before {self._verb}")
        return super().run(command, timeout_s=timeout_s, stdin=stdin)


@pytest.fixture
def tag(tmp_path: Path) -> Iterator[str]:
    tag = f"test-{os.getpid()}-{tmp_path.name}/L1/load"
    yield tag
    reap(LocalHost(), find_tagged(LocalHost(), tag), grace_s=0.0)


def test_a_load_goes_on_without_us_and_is_found_again(tmp_path: Path, tag: str) -> None:
    with ScriptedServer(lambda r: events(*completion(r.body["max_tokens"]))) as server:
        target = Target(base_url=server.url, api="openai-completions")
        with pytest.raises(RemoteError, match="before end_of"):
            run_rung_on_host(Without("end_of"), target, SPEC, folder=str(tmp_path), tag=tag)
        outcome = run_rung_on_host(Without("start"), target, SPEC, folder=str(tmp_path), tag=tag)
    assert outcome.rung.completed == 9


def test_a_stop_that_was_asked_for_ends_the_load(tmp_path: Path, tag: str) -> None:
    waits = iter([False, True])

    def on_wait() -> None:
        if next(waits):
            raise Interrupted("stopped by SIGTERM")

    with ScriptedServer(lambda r: [HANG]) as server:
        target = Target(base_url=server.url, api="openai-completions")
        with pytest.raises(Interrupted):
            run_rung_on_host(LocalHost(), target, SPEC, folder=str(tmp_path), tag=tag, on_wait=on_wait)
    assert find_tagged(LocalHost(), tag) == []


def test_a_generator_that_was_killed_says_so(tmp_path: Path, tag: str) -> None:
    def on_wait() -> None:
        for process in find_tagged(LocalHost(), tag):
            with suppress(ProcessLookupError):  # its parent may have taken it along
                os.kill(process.pid, signal.SIGKILL)

    with ScriptedServer(lambda r: [HANG]) as server:
        target = Target(base_url=server.url, api="openai-completions")
        with pytest.raises(HostError, match="ended without a result: Killed"):
            run_rung_on_host(LocalHost(), target, SPEC, folder=str(tmp_path), tag=tag, on_wait=on_wait)
    assert list(tmp_path.iterdir()) == []


def test_a_host_without_python_says_so(tmp_path: Path) -> None:
    target = Target(base_url="http://127.0.0.1:1", api="openai-completions")

    with pytest.raises(HostError, match="measure from this machine"):
        run_rung_on_host(
            LocalHost(), target, SPEC, folder=str(tmp_path), tag="t/L1/load", python="python-of-no-host"
        )


def test_the_archive_needs_only_the_standard_library(tmp_path: Path) -> None:
    archive = tmp_path / "loadgen.pyz"
    archive.write_bytes(loadgen_archive())

    done = subprocess.run(
        [SYSTEM_PYTHON, "-I", "-S", str(archive)], input=b"{}", capture_output=True, timeout=60, check=False
    )

    assert b"ModuleNotFoundError" not in done.stderr
    assert b"KeyError" in done.stderr
