"""A host on which every command gets additional variables: a module system, a simulated machine."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from moeagent.tools.hosts.command import Command, Part
from moeagent.tools.hosts.protocol import CommandResult, Host


class HostWithEnvironment:
    """Another host with variables laid under those of each command."""

    def __init__(self, inner: Host, env: Mapping[str, Part], *, name: str, simulated: bool) -> None:
        self._inner = inner
        self._env = dict(env)
        self._name = name
        self._simulated = simulated

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def simulated(self) -> bool:
        """Whether its results must be marked as simulated."""
        return self._simulated

    @property
    def breaks(self) -> int:
        """See Host.breaks."""
        return self._inner.breaks

    def run(self, command: Command, *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        """Run a command with the additional variables; see Host.run."""
        full = replace(command, env={**self._env, **command.env})
        return self._inner.run(full, timeout_s=timeout_s, stdin=stdin)

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """See Host.read."""
        return self._inner.read(path, offset=offset, limit=limit)

    def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """See Host.put."""
        self._inner.put(path, data, mode=mode)

    def forward(self, port: int) -> AbstractContextManager[int]:
        """See Host.forward."""
        return self._inner.forward(port)

    def close(self) -> None:
        """See Host.close."""
        self._inner.close()
