"""A real server process of the simulated machine, and the box it runs on."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moeagent.memory.records import FlagValue
from moeagent.tools.sim.environment import SIM_ENGINE_COMMAND, SimHost, sim_host_environment
from moeagent.tools.sim.machines import argv

READY = "The server is fired up and ready to roll!"


class ServerProcess:
    """One server process with its log."""

    def __init__(self, command: list[str], env: dict[str, str], port: int) -> None:
        self.port = port
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command, env={**os.environ, **env}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, text: str, timeout_s: float = 30.0) -> bool:
        """Wait until a line contains the text, or the log ends."""
        with self._changed:
            self._changed.wait_for(
                lambda: any(text in line for line in self.lines) or not self._reader.is_alive(), timeout_s
            )
        return any(text in line for line in self.lines)

    def ended(self, timeout_s: float = 30.0) -> int:
        """Exit status as a shell shows it."""
        code = self.process.wait(timeout_s)
        self._reader.join(timeout_s)
        return 128 - code if code < 0 else code

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()

    @property
    def log(self) -> str:
        return "\n".join(self.lines)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


Launcher = Callable[..., ServerProcess]


@pytest.fixture
def launch() -> Iterator[Launcher]:
    """Starts servers on a box: launch(box, flags, env, command); all are stopped at the end."""
    started: list[ServerProcess] = []

    def start(
        box: SimHost,
        flags: dict[str, FlagValue] | None = None,
        env: dict[str, str] | None = None,
        command: tuple[str, ...] = SIM_ENGINE_COMMAND,
        port: int | None = None,
    ) -> ServerProcess:
        config = box.campaign.baseline
        config = config.model_copy(update={"flags": {**config.flags, **(flags or {})}})
        port = port or free_port()
        line = [*command, *argv(config, box.model_path), "--port", str(port)]
        started.append(ServerProcess(line, {**box.env, "MOEAGENT_TAG": "test/L1", **(env or {})}, port))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def glm_box(tmp_path: Path) -> SimHost:
    """Box A, with its time running fast."""
    return sim_host_environment(tmp_path / "box", seed=0, model="A", startup_scale=4000.0, serving_scale=6.0)


@pytest.fixture
def kimi_box(tmp_path: Path) -> SimHost:
    """Box B, with its time running fast."""
    return sim_host_environment(tmp_path / "box", seed=0, model="B", startup_scale=4000.0, serving_scale=6.0)


@pytest.fixture
def nvidia_smi(glm_box: SimHost) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the box's nvidia-smi."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "moeagent.tools.sim.nvidia_smi", *arguments]
        return subprocess.run(command, env={**os.environ, **glm_box.env}, capture_output=True, text=True)

    return call
