"""The life of a server in a real container."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.podman import IMAGE, no_container_left
from parts.sshd import free_port

from moeagent.tools.engines.protocol import ReadySpec
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import find_tagged, probe, reap
from moeagent.tools.hosts.protocol import Command
from moeagent.tools.hosts.wrapped import find_wrapped
from moeagent.tools.hosts.wrappers import Wrapper, WrapperSpec, resolve
from moeagent.tools.server.lifecycle import ServerHandle, adopt_server, start_server, stop_server
from moeagent.tools.server.readiness import wait_until_ready

HOST = LocalHost()
HEALTH_ONLY = ReadySpec(health_paths=("/health",), ready_log=None, stages=())
RUN = resolve(WrapperSpec(command=("podman", "run", IMAGE)))

pytestmark = [pytest.mark.part("podman"), pytest.mark.usefixtures("no_container_left")]
__all__ = ["no_container_left"]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[str]:
    run = f"test-{os.getpid()}-{tmp_path.name}"
    yield run
    reap(HOST, find_tagged(HOST, run), grace_s=0)


def launched(folder: Path, run: str, name: str, wrapper: Wrapper = RUN) -> ServerHandle:
    port = free_port()
    command = Command((*wrapper.prefix, "/bin/server", str(port)), {"COLOUR": "green"})
    handle = start_server(
        HOST, command, run=run, launch=name, folder=str(folder / name), port=port, wrapper=wrapper
    )
    report = wait_until_ready(HOST, handle, HEALTH_ONLY, limit_s=60, poll_s=0.1)
    assert report.outcome == "ready", Path(handle.log).read_text()
    return handle


def test_a_stop_leaves_nothing_and_touches_nobody_else(tmp_path: Path, run: str) -> None:
    handle, other = (launched(tmp_path, run, name) for name in ("L1", "L10"))
    assert "colour green" in Path(handle.log).read_text()
    stopped = stop_server(HOST, handle, grace_s=10)
    assert stopped.clean
    assert find_wrapped(HOST, RUN, handle.process.tag) == ()
    assert adopt_server(HOST, launch="L10", folder=other.folder, port=other.port, wrapper=RUN) == other
    assert stop_server(HOST, other, grace_s=10).clean


def test_a_container_outlives_its_client_and_is_adopted_and_stopped(tmp_path: Path, run: str) -> None:
    handle = launched(tmp_path, run, "L1")
    os.killpg(handle.process.session, signal.SIGKILL)
    while probe(HOST, handle.process).alive:
        pass
    (found,) = find_wrapped(HOST, RUN, handle.process.tag)
    assert found.state == "running"
    assert adopt_server(HOST, launch="L1", folder=handle.folder, port=handle.port, wrapper=RUN) == handle
    assert stop_server(HOST, handle, grace_s=10).clean
    assert find_wrapped(HOST, RUN, handle.process.tag) == ()
