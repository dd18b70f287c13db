"""Plain TCP connections on one epoll: a batch of tokens costs one turn of the event loop, not a turn each.

It also makes a bare Python as cheap as one with uvloop: what is left per token is a read and two appends.
"""

from __future__ import annotations

import asyncio
import select
import socket
import time
from typing import TYPE_CHECKING

from moeagent.tools.load.generator.request import clock

if TYPE_CHECKING:
    from moeagent.tools.load.generator.connection import Connection

READ_BYTES = 1 << 16
NAP_S = 60e-6
"""While tokens pour in, the reader pauses this long between looks: stamps are late by about 0.1 ms, and CPU
per token falls by a quarter (measured at 1,024 streams: 13 to 10 ms per 1,000 tokens)."""
STAY_NS = 1_000_000
"""Then it also stays this long before the event loop has a turn, whose timers are a millisecond coarse."""
AVAILABLE = hasattr(select, "epoll")
"""Linux has it; elsewhere the event loop's own connections serve."""


class PlainSockets:
    """All plain connections of one process; the event loop waits for their epoll, which can be polled too."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.open: dict[int, PlainTransport] = {}
        self.pouring = False
        asyncio.get_running_loop().add_reader(self.epoll.fileno(), self._read_all)

    async def connect(self, host: str, port: int, connection: Connection) -> None:
        """Open a connection and hand it its transport; OSError when no address of the host takes it."""
        sock = await self._connected(host, port)
        transport = PlainTransport(self, sock, connection)
        self.open[sock.fileno()] = transport
        self.epoll.register(sock.fileno(), select.EPOLLIN)
        connection.connection_made(transport)

    async def _connected(self, host: str, port: int) -> socket.socket:
        loop, failure = asyncio.get_running_loop(), OSError(f"{host} has no address")
        for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, address)
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise failure

    def _read_all(self) -> None:
        until = clock() + STAY_NS if self.pouring else 0
        while True:
            self._read_ready()
            if clock() >= until:
                return
            time.sleep(NAP_S)

    def _read_ready(self) -> None:
        known = self.open.get
        for fd, events in self.epoll.poll(0):
            transport = known(fd)
            if transport is None:
                continue
            if events & select.EPOLLOUT:
                transport.flush()
            if events == select.EPOLLOUT:
                continue
            try:
                data = transport.recv(READ_BYTES)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError as error:
                transport.end(error)
                continue
            if data:
                transport.received(data)
            else:
                transport.end()

    def forget(self, transport: PlainTransport) -> None:
        """Close its socket and tell its connection, once, after whatever runs now."""
        fd = transport.sock.fileno()
        del self.open[fd]
        self.epoll.unregister(fd)
        transport.sock.close()
        asyncio.get_running_loop().call_soon(transport.connection.connection_lost, transport.error)


class PlainTransport(asyncio.Transport):
    """One plain connection, with what a `Connection` asks of a transport."""

    __slots__ = (
        "_awaits_room",
        "_closed",
        "_unsent",
        "connection",
        "error",
        "received",
        "recv",
        "sock",
        "sockets",
    )

    def __init__(self, sockets: PlainSockets, sock: socket.socket, connection: Connection) -> None:
        super().__init__({"socket": sock})
        self.sockets, self.sock, self.connection = sockets, sock, connection
        self.error: OSError | None = None
        self._unsent = b""
        self._awaits_room = self._closed = False
        self.recv, self.received = sock.recv, connection.data_received

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send now what the kernel takes, and the rest when it takes more."""
        if self._closed:
            return
        if self._unsent:
            self._unsent += bytes(data)
            return
        self._unsent = bytes(data)
        self.flush()

    def flush(self) -> None:
        """Send more of what is left."""
        try:
            self._unsent = self._unsent[self.sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.end(error)
            return
        if bool(self._unsent) is not self._awaits_room:
            self._awaits_room = not self._awaits_room
            events = select.EPOLLIN | select.EPOLLOUT if self._awaits_room else select.EPOLLIN
            self.sockets.epoll.modify(self.sock.fileno(), events)

    def is_closing(self) -> bool:
        """True as soon as nothing can be sent any more."""
        return self._closed

    def close(self) -> None:
        """Close at once: nobody closes a connection that still has something to say."""
        self.end()

    def abort(self) -> None:
        """Close at once."""
        self.end()

    def end(self, error: OSError | None = None) -> None:
        """Close, for this reason if there is one."""
        if not self._closed:
            self._closed, self.error = True, error
            self.sockets.forget(self)
