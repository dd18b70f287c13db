"""Plain connections on one epoll: bodies that the kernel takes in parts, ends, and errors."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from moeagent.tools.load.generator.connection import Connection
from moeagent.tools.load.generator.request import Request
from moeagent.tools.load.generator.sockets import AVAILABLE, PlainSockets

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="only Linux has epoll")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PATIENCE_S = 20


class Owner:
    """The owner of a connection: keeps what has ended, and says when."""

    coalesced_cut = 0

    def __init__(self) -> None:
        self.over = asyncio.Event()

    def finished(self, connection: Connection, request: Request) -> None:
        self.over.set()

    def start(self, connection: Connection, request: Request) -> None:
        request.fail("started again")
        self.over.set()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def run(server: socket.socket, wire: bytes) -> Request:
    """Send one request to whoever listens there; the request, ended."""

    async def one() -> Request:
        owner = Owner()
        connection, request = Connection(owner, 0), Request(0, wire, 1)
        await PlainSockets().connect(*server.getsockname(), connection)
        connection.send(request)
        await asyncio.wait_for(owner.over.wait(), PATIENCE_S)
        # The answer may be whole before the server's end of the connection is seen.
        connection.abandon()
        return request

    return asyncio.run(one())


def serve(listener: socket.socket, wanted: int, answer: bytes, received: bytearray) -> threading.Thread:
    """Take so many bytes, slowly, answer and close."""

    def take() -> None:
        taken, _ = listener.accept()
        with taken:
            while len(received) < wanted:
                received.extend(taken.recv(1 << 14))
            taken.sendall(answer)

    thread = threading.Thread(target=take)
    thread.start()
    return thread


def test_a_body_larger_than_the_kernels_buffer_arrives_whole(listener: socket.socket) -> None:
    wire, received = bytes(range(256)) * (1 << 16), bytearray()
    thread = serve(listener, len(wire), ANSWER, received)

    request = run(listener, wire)

    thread.join()
    assert bytes(received) == wire
    assert (request.failure, request.status) == ("", 200)


@pytest.mark.parametrize(
    ("answer", "failure"),
    [(ANSWER[:-1], "truncated"), (b"HTTP/1.1 200 OK\r\n", "disconnected"), (b"", "disconnected")],
)
def test_a_server_that_closes_too_early_is_told_apart(
    listener: socket.socket, answer: bytes, failure: str
) -> None:
    thread = serve(listener, 1, answer, bytearray())

    request = run(listener, b"x")

    thread.join()
    assert request.failure == failure


def test_nobody_listening_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()

    async def one() -> None:
        await PlainSockets().connect(*address, Connection(Owner(), 0))

    with pytest.raises(ConnectionRefusedError):
        asyncio.run(one())
