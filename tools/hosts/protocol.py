"""The seam between moeagent and a machine: five methods."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from moeagent.tools.hosts.command import Command, Secret

__all__ = ["Command", "CommandResult", "Host", "Secret"]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended and what it printed."""

    exit_code: int
    """128 + n when signal n ended it; 127 when the program was not found, 126 when it may not be run."""
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        """True when it ended with status 0."""
        return self.exit_code == 0

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")


class Host(Protocol):
    """A machine with a POSIX shell.

    Every method raises HostError when the host says no and RemoteError when the connection broke and did
    not come back in time; both messages name the host and what was being done.
    """

    @property
    def name(self) -> str:
        """As the user wrote it."""

    @property
    def simulated(self) -> bool:
        """True for a machine whose results must be marked as simulated."""

    @property
    def breaks(self) -> int:
        """How often its connection was lost and opened again: what went through it meanwhile was cut."""

    def run(self, command: Command, *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        """Run a command to its end; when the time is up, stop its processes and raise HostError."""

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file, from `offset`, at most `limit` of them."""

    def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a file whole or not at all, making its folder (0o700) where it is missing."""

    def forward(self, port: int) -> AbstractContextManager[int]:
        """A local port that reaches 127.0.0.1:`port` of the host while the context is open."""

    def close(self) -> None:
        """Let go of connections. What runs detached goes on."""
