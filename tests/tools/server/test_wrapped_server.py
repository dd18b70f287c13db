"""A server behind a container runtime: started, its client killed, found, adopted or stopped, gone."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from parts.containers import Runtime, runtime
from parts.sshd import free_port

from moeagent.tools.engines.protocol import ReadySpec
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import find_tagged, probe, reap
from moeagent.tools.hosts.protocol import Command
from moeagent.tools.hosts.wrapped import find_started, find_wrapped, runs, stop_wrapped
from moeagent.tools.hosts.wrappers import Wrapper, WrapperSpec, resolve
from moeagent.tools.server.lifecycle import (
    ServerHandle,
    adopt_server,
    server_state,
    start_server,
    stop_server,
)
from moeagent.tools.server.readiness import wait_until_ready

HOST = LocalHost()
HEALTH_ONLY = ReadySpec(health_paths=("/health",), ready_log=None, stages=())
SERVER = """
import http.server, os, signal, sys
print("colour", os.environ.get("COLOUR"), flush=True)
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        print("asked", flush=True)
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
Launch = Callable[..., ServerHandle]


@pytest.fixture
def docker(tmp_path: Path) -> Iterator[Runtime]:
    with runtime(tmp_path / "runtime") as made:
        yield made


@pytest.fixture
def run(tmp_path: Path) -> Iterator[str]:
    run = f"test-{os.getpid()}-{tmp_path.name}"
    yield run
    reap(HOST, find_tagged(HOST, run), grace_s=0)


@pytest.fixture
def launch(run: str, tmp_path: Path) -> Launch:
    def start(wrapper: Wrapper, *words: str, name: str = "L1") -> ServerHandle:
        port = free_port()
        inner = (sys.executable, "-c", SERVER, str(port), *words)
        command = Command((*wrapper.prefix, *inner), {"COLOUR": "green"})
        folder = f"{tmp_path}/box/{run}/{name}"
        return start_server(HOST, command, run=run, launch=name, folder=folder, port=port, wrapper=wrapper)

    return start


def ready(handle: ServerHandle) -> None:
    assert wait_until_ready(HOST, handle, HEALTH_ONLY, limit_s=60, poll_s=0.05).outcome == "ready"


def kill_client(handle: ServerHandle) -> None:
    """kill -9 of everything on this side: the session with the client in it."""
    os.killpg(handle.process.session, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it may have been of that session, and reaped already
        os.kill(handle.process.pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        signal.sigtimedwait([], 0.05)
    raise AssertionError("it did not happen")


def test_its_variables_and_its_log_go_through_and_a_stop_leaves_nothing(
    docker: Runtime, launch: Launch
) -> None:
    handle = launch(docker.wrapper("run", "image"))
    ready(handle)
    (container,) = docker.running()
    assert container["labels"] == {"moeagent.tag": handle.process.tag}
    assert "colour green" in Path(handle.log).read_text()
    stopped = stop_server(HOST, handle, grace_s=10)
    assert stopped.clean
    assert stopped.wrapped is not None
    assert (stopped.wrapped.ids, stopped.wrapped.gone) == ((container["id"],), True)
    assert docker.containers() == []
    assert stopped.processes.exit_code == 143


@pytest.mark.parametrize("hidden", [False, True])
def test_a_container_whose_client_was_killed_is_adopted_then_stopped(
    docker: Runtime, launch: Launch, hidden: bool
) -> None:
    docker.hide(hidden)
    wrapper = docker.wrapper("run", "image")
    handle = launch(wrapper)
    wait_until(lambda: len(docker.running()) == 1)
    kill_client(handle)
    wait_until(lambda: not probe(HOST, handle.process).alive)
    assert runs(HOST, wrapper, handle.process.tag)
    adopted = adopt_server(HOST, launch="L1", folder=handle.folder, port=handle.port, wrapper=wrapper)
    assert adopted == handle
    assert server_state(HOST, handle).alive
    assert stop_server(HOST, handle, grace_s=10).clean
    assert docker.containers() == []
    assert not server_state(HOST, handle).alive
    assert adopt_server(HOST, launch="L1", folder=handle.folder, port=handle.port, wrapper=wrapper) is None


def test_what_was_printed_after_the_client_died_is_in_the_log(docker: Runtime, launch: Launch) -> None:
    handle = launch(docker.wrapper("run", "image"))
    wait_until(lambda: len(docker.running()) == 1)
    kill_client(handle)
    ready(handle)
    assert "asked" not in Path(handle.log).read_text()
    assert stop_server(HOST, handle, grace_s=10).clean
    assert "colour green" in Path(handle.log).read_text()
    assert "asked" in Path(handle.log).read_text()


def test_one_that_is_deaf_to_a_polite_stop_is_ended(docker: Runtime, launch: Launch) -> None:
    handle = launch(docker.wrapper("run", "image"), "deaf")
    ready(handle)
    stopped = stop_server(HOST, handle, grace_s=1)
    assert stopped.clean
    assert stopped.processes.exit_code == 137


def test_look_alikes_are_never_touched(docker: Runtime, launch: Launch, run: str) -> None:
    handle = launch(docker.wrapper("run", "image"))
    others = [
        launch(docker.wrapper("run", "--label", f"other.tag={handle.process.tag}", "image"), name="L10"),
        launch(docker.wrapper("run", "--name", "moeagent", "image"), name="L2"),
    ]
    for each in (handle, *others):
        ready(each)
    assert stop_server(HOST, handle, grace_s=10).clean
    assert len(docker.running()) == 2
    assert all(server_state(HOST, each).alive for each in others)
    assert stop_wrapped(HOST, docker.wrapper("run", "image"), f"{run}/L", grace_s=1).ids == ()
    assert len(docker.running()) == 2
    for each in others:
        assert stop_server(HOST, each, grace_s=10).clean


def test_what_a_killed_moeagent_left_is_found_without_its_settings(
    docker: Runtime, launch: Launch, tmp_path: Path
) -> None:
    docker.hide(True)
    handle = launch(docker.wrapper("run", "image"))
    wait_until(lambda: len(docker.running()) == 1)
    kill_client(handle)
    (left,) = find_started(HOST, f"{tmp_path}/box")
    assert (left.tag, left.folder) == (handle.process.tag, handle.folder)
    assert len(find_wrapped(HOST, left.wrapper, left.tag)) == 1
    assert stop_wrapped(HOST, left.wrapper, left.tag, grace_s=10).gone
    assert find_wrapped(HOST, left.wrapper, left.tag) == ()


def test_a_process_in_a_running_container_is_found_and_stopped_and_the_container_stays(
    docker: Runtime, launch: Launch
) -> None:
    box = launch(docker.wrapper("run", "--name", "box", "image"), name="L9")
    ready(box)
    wrapper = docker.wrapper("exec", "box")
    handle = launch(wrapper)
    ready(handle)
    inside = next(one for one in docker.running() if one["kind"] == "exec" and "sleep" not in one["command"])
    kill_client(handle)
    wait_until(lambda: not probe(HOST, handle.process).alive)
    assert str(inside["pid"]) in {each.id for each in find_wrapped(HOST, wrapper, handle.process.tag)}
    assert server_state(HOST, handle).alive
    assert stop_server(HOST, handle, grace_s=10).clean
    assert not server_state(HOST, handle).alive
    assert server_state(HOST, box).alive
    assert stop_server(HOST, box, grace_s=10).clean


def test_a_slurm_step_is_found_by_its_name_and_cancelled(
    docker: Runtime, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{docker.program.parent}:{os.environ['PATH']}")
    docker.hide(True)
    srun = resolve(WrapperSpec(command=("srun", "--gres=gpu:8")))
    handle, other = launch(srun), launch(srun, name="L10")
    wait_until(lambda: len(docker.running()) == 2)
    kill_client(handle)
    wait_until(lambda: not probe(HOST, handle.process).alive)
    assert server_state(HOST, handle).alive
    stopped = stop_server(HOST, handle, grace_s=10)
    assert stopped.clean
    assert stopped.wrapped is not None
    assert stopped.wrapped.kind == "slurm"
    assert server_state(HOST, other).alive
    assert stop_server(HOST, other, grace_s=10).clean
    assert docker.containers() == []
