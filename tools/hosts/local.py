"""This machine, behind the same protocol as any other."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from moeagent.memory.errors import HostError
from moeagent.tools.hosts.command import Command, called, encode, plain
from moeagent.tools.hosts.protocol import CommandResult

_KILL_GRACE_S = 2.0
_ENDED = os.WEXITED | os.WNOWAIT | os.WNOHANG


class LocalHost:
    """The machine that moeagent runs on."""

    def __init__(self, name: str = "local", *, simulated: bool = False) -> None:
        self._name = name
        self._simulated = simulated

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def simulated(self) -> bool:
        """True when it stands in for a machine that is not there."""
        return self._simulated

    @property
    def breaks(self) -> int:
        """None: nothing lies between."""
        return 0

    def run(self, command: Command, *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        """Run a command in its own process group; see Host.run.

        Its streams are files, so neither a full pipe nor a child that keeps one open can hang the call.
        """
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(stdin)
            given.seek(0)
            try:
                process = _popen(command, given, out, err)
            except OSError as error:
                code = 126 if isinstance(error, PermissionError) else 127
                return CommandResult(code, b"", os.fsencode(f"{error.strerror}: {error.filename}\n"))
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise HostError(
                    f"{self.name}: no end after {timeout_s:g} s, stopped: {called(command)}; "
                    "give it more time or see what it waits for"
                ) from None
            finally:
                _stop(process)
            return CommandResult(code if code >= 0 else 128 - code, _content(out), _content(err))

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file; see Host.read."""
        try:
            with Path(path).open("rb") as file:
                file.seek(offset)
                return file.read(-1 if limit is None else limit)
        except OSError as error:
            raise HostError(f"{self.name}: cannot read {path}: {error.strerror}") from error

    def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a file whole or not at all; see Host.put."""
        target = Path(path)
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                Path(partial).chmod(mode)
                Path(partial).replace(target)
            except BaseException:
                Path(partial).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise HostError(
                f"{self.name}: cannot write {path}: {error.strerror}; check its folder's owner and free space"
            ) from error

    @contextmanager
    def forward(self, port: int) -> Generator[int]:
        """The same port: nothing lies between."""
        yield port

    def close(self) -> None:
        """Nothing is held."""


def _popen(command: Command, given: IO[bytes], out: IO[bytes], err: IO[bytes]) -> subprocess.Popen[bytes]:
    added = {encode(name): encode(plain(value)) for name, value in command.env.items()}
    return subprocess.Popen(
        [encode(plain(part)) for part in command.argv],
        stdin=given,
        stdout=out,
        stderr=err,
        cwd=None if command.cwd is None else encode(command.cwd),
        env={**os.environb, **added},
        start_new_session=True,
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a command that is still running, with its whole group."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _KILL_GRACE_S
    # WNOWAIT leaves the leader uncollected, so that the number of the group stays its own.
    while time.monotonic() < deadline and not os.waitid(os.P_PID, process.pid, _ENDED):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
