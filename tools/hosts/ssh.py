"""A machine over SSH: one connection, opened at the first call and again when it breaks."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, TypeVar

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.command import Command, called
from moeagent.tools.hosts.protocol import CommandResult
from moeagent.tools.hosts.script import said, script
from moeagent.tools.hosts.ssh_config import resolve
from moeagent.tools.hosts.ssh_settings import SshSettings

if TYPE_CHECKING:
    from paramiko import Transport

    from moeagent.tools.hosts.ssh_connect import Connection
    from moeagent.tools.hosts.ssh_exec import RemoteCall

Result = TypeVar("Result")

_FILE_S = 120.0
_STOP_S = 15.0


class SshHost:
    """A machine over SSH. Calls may come from several threads."""

    def __init__(self, spec: str, settings: SshSettings) -> None:
        """Look the way up; nothing is connected yet. Raises InputError for a configuration that is wrong."""
        self._name = spec
        self._settings = settings
        self._hops = resolve(spec, settings)
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._met = False
        self._breaks = 0

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def simulated(self) -> bool:
        """Never."""
        return False

    @property
    def breaks(self) -> int:
        """See Host.breaks."""
        return self._breaks

    def run(self, command: Command, *, timeout_s: float, stdin: bytes = b"") -> CommandResult:
        """Run a command to its end; see Host.run.

        A connection that breaks before the command was sent is opened again, and also later for a command
        that is `repeatable`. Otherwise RemoteError: how far the command came is not known.
        """
        from moeagent.tools.hosts.ssh_exec import CutOffError, OutOfTimeError, RemoteCall

        shown = called(command)
        call = RemoteCall(command, self.name)

        def attempt() -> CommandResult:
            nonlocal call
            transport = self._transport()
            self._stop(call)
            call = RemoteCall(command, self.name)
            try:
                return call.run(transport, stdin, timeout_s)
            except CutOffError as error:
                self._drop(transport)
                if command.repeatable:
                    raise
                raise RemoteError(
                    f"{error}; it is not known how far it came: {shown}. "
                    "Look at the host before running it again"
                ) from error

        try:
            return self._persist(attempt, shown)
        except KeyboardInterrupt:
            self._stop(call)
            raise
        except OutOfTimeError:
            self._stop(call)
            raise HostError(
                f"{self.name}: no end after {timeout_s:g} s, stopped: {shown}; give it more time or see what "
                "it waits for"
            ) from None

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file; see Host.read."""
        result = self.run(
            script("remote", "read", path, str(offset), "" if limit is None else str(limit)),
            timeout_s=_FILE_S,
        )
        if not result.ok:
            raise HostError(f"{self.name}: cannot read {path}: {said(result)}")
        return result.stdout

    def put(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a file whole or not at all; see Host.put."""
        result = self.run(
            script("remote", "put", path, f"{mode:o}", str(len(data))), timeout_s=_FILE_S, stdin=data
        )
        if not result.ok:
            raise HostError(
                f"{self.name}: cannot write {path}: {said(result)}; check its folder's owner and free space"
            )

    def forward(self, port: int) -> AbstractContextManager[int]:
        """A local port that leads to the host's; see Host.forward. New connections survive a reconnect."""
        from moeagent.tools.hosts.ssh_forward import forwarded

        return forwarded(self._transport, port)

    def close(self) -> None:
        """Close the connection. What runs detached goes on."""
        self._drop()

    def _persist(self, attempt: Callable[[], Result], doing: str) -> Result:
        """Try again while the connection is the trouble, inside the deadline; the first contact once."""
        from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

        from moeagent.tools.hosts.ssh_connect import UnreachableError

        retrying = Retrying(
            stop=lambda state: not self._met or stop_after_delay(self._settings.reconnect_s)(state),
            wait=wait_exponential(multiplier=0.25, max=10),
            retry=retry_if_exception_type(UnreachableError),
        )
        try:
            return retrying(attempt)
        except RetryError as error:
            last = error.last_attempt.exception()
            tried = f", tried again for {self._settings.reconnect_s:g} s" if self._met else ""
            raise RemoteError(f"{last}{tried}; was about to run: {doing}") from last

    def _transport(self) -> "Transport":
        """A living transport: the present one or a new one. Raises UnreachableError or HostError."""
        from moeagent.tools.hosts.ssh_connect import connect
        from moeagent.tools.hosts.ssh_watch import watch

        with self._lock:
            if self._connection is not None and self._connection.alive():
                return self._connection.transport
            if self._connection is not None:
                self._connection.close()
            self._connection = connect(self._hops, use_agent=self._settings.use_agent)
            self._breaks += self._met
            self._met = True
            watch(self._connection, self._hops[-1])
            return self._connection.transport

    def _drop(self, broken: "Transport | None" = None) -> None:
        """Close the connection; with `broken`, only if no other thread has opened a new one meanwhile."""
        with self._lock:
            connection = self._connection
            if broken is not None and connection is not None and connection.transport is not broken:
                return
            self._connection = None
        if connection is not None:
            connection.close()

    def _stop(self, call: "RemoteCall") -> None:
        """End what still runs of a call that was given up, told by the start time of its shell."""
        from moeagent.tools.hosts.ssh_exec import OutOfTimeError, RemoteCall

        if call.shell is None:
            return
        stopper = RemoteCall(script("remote", "stop", *call.shell), self.name)
        with suppress(HostError, OutOfTimeError):
            stopper.run(self._transport(), b"", _STOP_S)
