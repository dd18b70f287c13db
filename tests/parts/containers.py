"""A container runtime for tests: the stand-in as a program named `docker`."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from moeagent.tools.hosts.wrappers import Wrapper, WrapperSpec, resolve

SCRIPT = Path(__file__).with_name("standin_docker.py")


class Runtime:
    """Its program and what it holds."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "containers"
        self.state.mkdir(parents=True)
        self.program = folder / "bin" / "docker"
        self.program.parent.mkdir()
        self.hide(False)

    def hide(self, hidden: bool) -> None:
        """Whether what runs inside looks like another user's to the host."""
        words = [f"STANDIN_DOCKER={shlex.quote(str(self.state))}"]
        words += ["STANDIN_DOCKER_HIDDEN=1"] if hidden else []
        command = f"exec env {' '.join(words)} {shlex.quote(sys.executable)} {shlex.quote(str(SCRIPT))}"
        self._write(self.program, command)
        for name in ("srun", "squeue", "scancel"):
            self._write(self.program.with_name(name), f"{command} {name}")

    @staticmethod
    def _write(program: Path, command: str) -> None:
        program.write_text(f'#!/bin/sh\n{command} "$@"\n')
        program.chmod(0o755)

    def wrapper(self, *words: str) -> Wrapper:
        """A wrapper with this program."""
        return resolve(WrapperSpec(command=(str(self.program), *words)))

    def containers(self) -> list[dict[str, Any]]:
        """Everything that it knows of, containers and what was started in them."""
        return [json.loads(file.read_text()) for file in sorted(self.state.glob("*.json"))]

    def running(self) -> list[dict[str, Any]]:
        """What runs."""
        return [one for one in self.containers() if one["state"] == "running"]

    def end(self) -> None:
        """Kill whatever is left."""
        for one in self.containers():
            with suppress(ProcessLookupError, KeyError):
                os.killpg(one["pid"], signal.SIGKILL)


@contextmanager
def runtime(folder: Path) -> Iterator[Runtime]:
    """A runtime of its own, with nothing left behind."""
    made = Runtime(folder)
    try:
        yield made
    finally:
        made.end()
