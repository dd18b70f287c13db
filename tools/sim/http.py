"""A small HTTP/1.1 server on asyncio.Protocol: plain answers, and streams that cost one write a token."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

MAX_HEADER = 64 * 1024
MAX_BODY = 256 * 1024 * 1024
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 411: "Length Required",
           413: "Content Too Large", 503: "Service Unavailable"}  # fmt: skip


@dataclass
class HttpRequest:
    """One request, body read."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: tuple[str, int]
    connection: "Connection" = field(repr=False)

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return json.loads(self.body or b"null")

    def answer(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        """Send a whole answer."""
        head = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'OK')}\r\ncontent-type: {content_type}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self.connection.finish(head.encode() + body)

    def answer_json(self, status: int, value: Any) -> None:
        """Send a JSON answer."""
        self.answer(status, json.dumps(value).encode())

    def stream(self) -> "Stream":
        """Begin a server-sent event stream."""
        return Stream(self.connection)


class Stream:
    """A chunked answer under way."""

    __slots__ = ("_connection", "on_abort")

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self.on_abort: Callable[[], None] | None = None
        connection.stream = self
        connection.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        )

    def send(self, data: bytes) -> None:
        """Send one chunk."""
        self._connection.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        """End the stream; the connection stays open for the next request."""
        self._connection.stream = None
        self._connection.finish(b"0\r\n\r\n")


class Connection(asyncio.Protocol):
    """One client connection; requests are answered one after the other."""

    def __init__(self, handle: Callable[[HttpRequest], None], connections: set["Connection"]) -> None:
        self._handle, self._connections = handle, connections
        self._buffer = bytearray()
        self._busy = False
        self._closing = False
        self._transport: asyncio.Transport | None = None
        self.stream: Stream | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=1 << 24)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client went away."""
        self._connections.discard(self)
        self._transport = None
        if self.stream is not None and self.stream.on_abort is not None:
            self.stream.on_abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        self._buffer += data
        if not self._busy:
            self._next()

    def write(self, data: bytes) -> None:
        """Send bytes if the client is still there."""
        if self._transport is not None:
            self._transport.write(data)

    def finish(self, data: bytes) -> None:
        """Send the last bytes of an answer."""
        self.write(data)
        self._busy = False
        if self._closing and self._transport is not None:
            self._transport.close()
        elif self._buffer:
            asyncio.get_running_loop().call_soon(self._next)

    def abort(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _next(self) -> None:
        if self._busy:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEADER:
                self._refuse(413)
            return
        head = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        first = head[0].split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
        }
        length = headers.get("content-length", "0")
        if len(first) != 3 or not length.isdigit() or "chunked" in headers.get("transfer-encoding", ""):
            self._refuse(411 if len(first) == 3 else 400)
            return
        if int(length) > MAX_BODY:
            self._refuse(413)
            return
        total = end + 4 + int(length)
        if len(self._buffer) < total:
            return
        body = bytes(self._buffer[end + 4 : total])
        del self._buffer[:total]
        self._busy = True
        self._closing = headers.get("connection", "").lower() == "close" or first[2] == "HTTP/1.0"
        peer = self._transport.get_extra_info("peername") if self._transport else None
        address = (str(peer[0]), int(peer[1])) if peer else ("127.0.0.1", 0)
        self._handle(HttpRequest(first[0], first[1].partition("?")[0], headers, body, address, self))

    def _refuse(self, status: int) -> None:
        self._closing = True
        text = REASONS[status].encode()
        head = (
            f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
        )
        self.finish(head.encode() + text)
