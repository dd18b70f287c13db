"""A local port that leads to a port of the host, over the SSH connection of the moment."""

import socket
import socketserver
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from moeagent.memory.errors import HostError

if TYPE_CHECKING:
    from paramiko import Channel, Transport

_CHUNK = 64 * 1024


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024
    """A load of 1,024 connections at once must not be refused here."""


@contextmanager
def forwarded(transport: "Callable[[], Transport]", port: int) -> Generator[int]:
    """Open the local port. `transport` gives a living transport or raises HostError."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            channel = _open(transport, port)
            if channel is None:
                return
            try:
                _join(self.request, channel)
            finally:
                channel.close()

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _open(transport: "Callable[[], Transport]", port: int) -> "Channel | None":
    """A channel to the port, or None where nobody listens: the client sees its connection closed."""
    from paramiko import SSHException

    try:
        return transport().open_channel("direct-tcpip", ("127.0.0.1", port), ("127.0.0.1", 0))
    except (SSHException, HostError, OSError, EOFError):
        return None


def _join(client: socket.socket, channel: "Channel") -> None:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    upward = threading.Thread(target=_pump, args=(client, channel), daemon=True)
    upward.start()
    _pump(channel, client)
    # The host's side is done: a client that still waits to send would never end.
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
    upward.join()


def _pump(source: Any, sink: Any) -> None:
    """Copy until the source ends, then end the sink's input. Either may be a socket or a channel."""
    with suppress(OSError, EOFError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    with suppress(OSError, EOFError):
        sink.shutdown(socket.SHUT_WR)
