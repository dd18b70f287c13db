"""Start, adopt and stop of a server."""

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from parts.sshd import Sshd, free_port

from moeagent.memory.errors import HostError
from moeagent.tools.engines.protocol import ReadySpec
from moeagent.tools.hosts.processes import probe
from moeagent.tools.hosts.protocol import Command, Host
from moeagent.tools.hosts.ssh import SshHost
from moeagent.tools.server.lifecycle import ServerHandle, adopt_server, start_server, stop_server
from moeagent.tools.server.readiness import wait_until_ready

Launch = Callable[..., ServerHandle]
HEALTH_ONLY = ReadySpec(health_paths=("/health",), ready_log=None, stages=())


def test_stop_leaves_the_host_clean(host: Host, launch: Launch) -> None:
    handle = launch("listen")
    assert wait_until_ready(host, handle, HEALTH_ONLY, limit_s=60, poll_s=0.05).outcome == "ready"
    stopped = stop_server(host, handle, grace_s=10, memory_released=lambda: True)
    assert (stopped.clean, stopped.port_free, stopped.memory_released) == (True, True, True)
    assert stopped.processes.signals == ("SIGTERM",)
    assert stop_server(host, handle, grace_s=1).clean


def test_memory_that_stays_held_is_not_clean(host: Host, launch: Launch) -> None:
    stopped = stop_server(host, launch("hang"), grace_s=10, memory_released=lambda: False, settle_s=0)
    assert stopped.processes.gone
    assert not stopped.clean


def test_starting_a_launch_again_gives_the_same_server(
    host: Host, launch: Launch, run: str, tmp_path: Path
) -> None:
    handle = launch("listen")
    wait_until_ready(host, handle, HEALTH_ONLY, limit_s=60, poll_s=0.05)
    assert launch("listen", port=handle.port) == handle
    assert adopt_server(host, launch="L1", folder=handle.folder, port=handle.port) == handle
    with pytest.raises(HostError, match=r"give .* its own folder"):
        start_server(host, Command(("true",)), run=run, launch="L2", folder=handle.folder, port=1)
    stop_server(host, handle, grace_s=10)
    assert adopt_server(host, launch="L1", folder=handle.folder, port=handle.port) is None


def test_a_taken_port_is_refused_before_anything_starts(host: Host, launch: Launch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostError, match=f"port {port} is taken by"):
            launch("listen", port=port)
    assert not (tmp_path / "L1").exists()


@pytest.mark.part("sshd")
def test_sshd_dies_while_waiting(tmp_path: Path, run: str) -> None:
    """The server goes on starting, the wait reconnects and sees it become ready."""
    sshd = Sshd(tmp_path / "sshd").start()
    host = SshHost(sshd.spec, sshd.settings())
    port, gate = free_port(), tmp_path / "gate"
    text = 'until [ -e "$0" ]; do sleep 0.05; done; exec "$1" -m http.server --bind 127.0.0.1 "$2"'
    command = Command(("sh", "-c", text, str(gate), sys.executable, str(port)))
    cuts = iter([True])

    def cut(_: object) -> None:
        if next(cuts, False):
            sshd.stop()
            sshd.start()
            gate.touch()

    try:
        handle = start_server(host, command, run=run, launch="L1", folder=f"{tmp_path}/L1", port=port)
        ready = ReadySpec(health_paths=("/",), ready_log=None, stages=())
        report = wait_until_ready(host, handle, ready, limit_s=60, poll_s=0.05, on_progress=cut)
        assert report.outcome == "ready"
        assert probe(host, handle.process).alive
        assert stop_server(host, handle, grace_s=10).clean
    finally:
        host.close()
        sshd.stop()
