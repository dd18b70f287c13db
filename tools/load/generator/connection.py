"""One HTTP/1.1 connection: stamps what arrives, and knows where a body ends."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

from moeagent.tools.load.generator.request import Request, clock

HEAD, CHUNKED, LENGTH, UNTIL_CLOSE = range(4)
LAST_CHUNK = b"0\r\n\r\n"
TAIL = 768
"""Bytes kept of a cumulative event: SGLang puts meta_info last, about 300 bytes."""


class Owner(Protocol):
    """Who is told when a request has ended."""

    coalesced_cut: int

    def finished(self, connection: Connection, request: Request) -> None:
        """The request has ended, well or not."""

    def start(self, connection: Connection, request: Request) -> None:
        """The request must be sent again on a new connection."""


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection that carries one request at a time."""

    __slots__ = ("closing", "driver", "framing", "remaining", "request", "slot", "transport", "used")

    def __init__(self, driver: Owner, slot: int) -> None:
        self.driver, self.slot = driver, slot
        self.transport: asyncio.Transport | None = None
        self.request: Request | None = None
        self.framing, self.remaining, self.used = HEAD, 0, False
        self.closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio calls this when the connection (and its TLS) stands."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment]
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def usable(self) -> bool:
        """True when the next request can go out on this connection."""
        return self.transport is not None and not self.transport.is_closing() and not self.closing

    def send(self, request: Request) -> None:
        """Stamp and write one request."""
        assert self.transport is not None
        self.request, self.framing, self.remaining = request, HEAD, 0
        request.slot, request.fresh, self.used = self.slot, not self.used, True
        request.sent = clock()
        self.transport.write(request.wire)

    def data_received(self, data: bytes) -> None:
        """The hot path: stamp, keep, look for the end."""
        now = clock()
        request = self.request
        if request is None:
            return
        request.stamps.append(now)
        request.chunks.append(data)
        if self.framing == CHUNKED:
            if data.endswith(LAST_CHUNK) or len(data) < len(LAST_CHUNK):
                self._end_if_last_chunk(request)
        elif self.framing == HEAD:
            self._read_head(request)
        elif self.framing == LENGTH:
            self.remaining -= len(data)
            if self.remaining <= 0:
                self._finish(request)

    def _end_if_last_chunk(self, request: Request) -> None:
        tail = b"".join(request.chunks[-7:])[-7:]
        # The line end before it tells the last chunk from a text that ends in the same five bytes.
        if tail == b"\r\n" + LAST_CHUNK:
            self._finish(request)

    def _read_head(self, request: Request) -> None:
        raw = b"".join(request.chunks)
        end = raw.find(b"\r\n\r\n")
        if end < 0:
            return
        try:
            self._take_head(request, raw[:end])
        except (ValueError, IndexError):
            request.fail("not_http", raw[:80].decode("latin-1"))
            self.abandon()
            return
        request.body_at = end + 4
        body = raw[end + 4 :]
        if self.framing == CHUNKED and (body.endswith(b"\r\n" + LAST_CHUNK) or body == LAST_CHUNK):
            self._finish(request)
        elif self.framing == LENGTH:
            self.remaining -= len(body)
            if self.remaining <= 0:
                self._finish(request)

    def _take_head(self, request: Request, head: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        version, status = lines[0].split(" ", 2)[:2]
        request.status = int(status)
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        request.content_type = headers.get("content-type", "")
        connection = headers.get("connection", "").lower()
        self.closing = connection == "close" or (version == "HTTP/1.0" and connection != "keep-alive")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            self.framing, request.chunked = CHUNKED, True
        elif "content-length" in headers:
            self.framing, self.remaining = LENGTH, int(headers["content-length"])
        else:
            self.framing, self.closing = UNTIL_CLOSE, True

    def _finish(self, request: Request) -> None:
        request.end = request.stamps[-1] if request.stamps else clock()
        self.request = None
        self.driver.finished(self, request)

    def abandon(self) -> None:
        """Drop the connection; a request in flight that has no failure yet counts as truncated."""
        request = self.request
        if self.transport is not None:
            self.transport.abort()
        if request is not None:
            request.fail("truncated", "connection closed by the client")
            self._finish(request)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server or the network ended the connection."""
        self.closing = True
        request = self.request
        if request is None:
            return
        if self.framing == UNTIL_CLOSE and exc is None:
            self._finish(request)
        elif not request.stamps and not request.fresh and not request.retried:
            # A kept-alive connection may be closed by the server just as the next request leaves.
            request.retried, self.request = True, None
            self.driver.start(self, request)
        else:
            request.fail(
                "truncated" if request.body_at else "disconnected", repr(exc) if exc else "server closed"
            )
            self._finish(request)


class CumulativeConnection(Connection):
    """For servers whose every event repeats the text: keeps tails, or memory grows with n squared."""

    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        """Stamp first, then cut."""
        if self.framing != CHUNKED or len(data) <= TAIL or self.request is None:
            super().data_received(data)
            return
        self.request.stamps.append(clock())
        self.driver.coalesced_cut += max(0, data.count(b"\ndata: {") - 1)
        self.request.chunks.append(data[-TAIL:])
        if data.endswith(LAST_CHUNK):
            self._end_if_last_chunk(self.request)
