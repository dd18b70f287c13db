"""One command over one SSH channel."""

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from moeagent.memory.errors import HostError
from moeagent.tools.hosts.command import Command, called
from moeagent.tools.hosts.protocol import CommandResult
from moeagent.tools.hosts.ssh_connect import UnreachableError
from moeagent.tools.hosts.ssh_frame import Unwrapper, wrap

if TYPE_CHECKING:
    from paramiko import Channel, Transport

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
"""More than this from one command is a mistake; logs are read in parts."""
_CHUNK = 256 * 1024
_LAST_WORD_S = 5.0


class OutOfTimeError(Exception):
    """The command did not end in time."""


class CutOffError(UnreachableError):
    """The connection broke while the command ran: nobody knows how far it came."""


class RemoteCall:
    """A command on its way."""

    def __init__(self, command: Command, host: str) -> None:
        self._command = command
        self._host = host
        self._out = Unwrapper(b"", MAX_OUTPUT_BYTES)
        self._err = Unwrapper(b"", MAX_OUTPUT_BYTES)

    @property
    def shell(self) -> tuple[str, ...] | None:
        """Pid, start time and process group of its shell on the host, as soon as they are known."""
        words = (self._out.head or b"").decode("ascii", "replace").split()
        return tuple(words) if len(words) == 3 and all(word.isdigit() for word in words) else None

    def run(self, transport: "Transport", stdin: bytes, timeout_s: float) -> CommandResult:
        """Run it to its end.

        Raises UnreachableError when it surely was not started, CutOffError when that is not known,
        OutOfTimeError when it still runs, HostError when the host does not run commands.
        """
        channel = self._open(transport)
        try:
            return self._converse(channel, stdin, time.monotonic() + timeout_s)
        finally:
            channel.close()

    def _open(self, transport: "Transport") -> "Channel":
        from paramiko import ChannelException, SSHException

        try:
            return transport.open_session()
        except ChannelException as error:
            raise HostError(
                f"{self._host} refuses another session ({error.text}): raise MaxSessions in its sshd_config"
            ) from error
        except (SSHException, OSError, EOFError) as error:
            raise UnreachableError(
                f"{self._host}: the connection broke: {error or type(error).__name__}"
            ) from error

    def _converse(self, channel: "Channel", stdin: bytes, deadline: float) -> CommandResult:
        from paramiko import SSHException

        envelope = wrap(self._command)
        self._out.mark = self._err.mark = envelope.mark
        threads = (
            threading.Thread(target=_send, args=(channel, envelope.script, stdin), daemon=True),
            threading.Thread(target=self._receive_err, args=(channel,), daemon=True),
        )
        try:
            channel.exec_command(envelope.request)
            for thread in threads:
                thread.start()
            self._receive_out(channel, deadline)
            threads[1].join(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise OutOfTimeError from None
        except (SSHException, OSError, EOFError) as error:
            raise CutOffError(
                f"{self._host}: the connection broke: {error or type(error).__name__}"
            ) from error
        return self._result(channel)

    def _receive_out(self, channel: "Channel", deadline: float) -> None:
        while not self._out.done:
            channel.settimeout(max(0.001, deadline - time.monotonic()))
            data = channel.recv(_CHUNK)
            if not data:
                return
            self._out.feed(data)
            if self._out.too_long or self._err.too_long:
                return

    def _receive_err(self, channel: "Channel") -> None:
        # A time-out here belongs to standard output, whose deadline the channel shares.
        while not self._err.done and not self._err.too_long:
            try:
                data = channel.recv_stderr(_CHUNK)
            except TimeoutError:
                if channel.closed:
                    return
                continue
            if not data:
                return
            self._err.feed(data)

    def _result(self, channel: "Channel") -> CommandResult:
        if self._out.too_long or self._err.too_long:
            raise HostError(
                f"{self._host}: more than {MAX_OUTPUT_BYTES} bytes of output from {called(self._command)}: "
                "write it to a file and read a part"
            )
        if self._out.done and self._err.done:
            return CommandResult(int(self._out.last_word), self._out.output, self._err.output)
        self._explain_no_start(channel)
        raise CutOffError(f"{self._host}: the connection broke before the command ended")

    def _explain_no_start(self, channel: "Channel") -> None:
        """Tell a log-in that runs no commands from a connection that broke."""
        channel.status_event.wait(_LAST_WORD_S)
        transport = channel.get_transport()
        if self._out.head is not None or channel.exit_status < 0 or not transport.is_active():
            return
        printed = (self._out.output + self._err.output).decode("utf-8", "replace").strip()[-300:]
        raise HostError(
            f"{self._host}: the login shell did not run our command (exit code {channel.exit_status}); it "
            f"printed: {printed or 'nothing'}. The account needs a shell that runs `sh -c`, and "
            "no forced command"
        )


def _send(channel: "Channel", script: bytes, stdin: bytes) -> None:
    """Feed standard input; a command that ends without reading it all is no error."""
    with suppress(OSError, EOFError):
        channel.sendall(script + stdin)
        channel.shutdown_write()
