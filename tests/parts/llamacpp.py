"""A real llama.cpp server with a tiny model: the command that starts it, and a running one."""

import json
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

from moeagent.memory.records import FlagValue, ServerConfig
from moeagent.tools.engines.llamacpp import LlamacppEngine
from moeagent.tools.engines.registry import embedded_llamacpp
from moeagent.tools.engines.tiny_moe import write_tiny_moe


def tiny_model(folder: Path) -> Path:
    """The tiny MoE model in this folder, written once."""
    path = folder / "tiny-moe.gguf"
    return path if path.exists() else write_tiny_moe(path)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_argv(model: Path | str, port: int, flags: dict[str, FlagValue] | None = None) -> list[str]:
    """The launch command, as the engine builds it."""
    config = ServerConfig(engine="llamacpp", flags=flags or {"--parallel": 1, "--ctx-size": 1024})
    command = LlamacppEngine().command(config, model=str(model), port=port, install=embedded_llamacpp())
    return [str(part) for part in command.argv]


@dataclass
class LlamaServer:
    """A running server; its log grows in `lines`, read by a thread so that a full pipe never holds it up."""

    process: subprocess.Popen[str]
    port: int
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._news: Queue[str | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def read_until(self, wanted: str) -> str:
        """Waits for the line that holds this text; AssertionError when the server ends before."""
        while (line := self._news.get(timeout=60)) is not None:
            if wanted in line:
                return line
        raise AssertionError(f"the server ended without {wanted!r}:\n{self.log}")

    def stop(self) -> int:
        """Stops it politely and returns the exit status; afterwards the log is whole."""
        self.process.terminate()
        status = self.process.wait(timeout=30)
        self._reader.join(timeout=30)
        return status

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                self.lines.append(line)
                self._news.put(line)
        self._news.put(None)

    @property
    def log(self) -> str:
        """What it printed so far."""
        return "".join(self.lines)

    def get(self, path: str) -> Any:
        """The JSON that it answers."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return json.load(answer)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON that it answers."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


@contextmanager
def llama_server(model: Path | str, flags: dict[str, FlagValue] | None = None) -> Iterator[LlamaServer]:
    """A server that is ready; it is gone afterwards."""
    port = free_port()
    process = subprocess.Popen(
        server_argv(model, port, flags), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    server = LlamaServer(process, port)
    try:
        server.read_until("listening on")
        yield server
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def failed_start(
    model: Path | str, port: int, flags: dict[str, FlagValue] | None = None, *, memory_kib: int | None = None
) -> tuple[int, str]:
    """Exit status and log of a server that must not come up, in as much address space as it is given."""
    argv = server_argv(model, port, flags)
    if memory_kib is not None:
        argv = ["sh", "-c", f'ulimit -v {memory_kib}; exec "$@"', "sh", *argv]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr
