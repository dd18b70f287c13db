"""The small HTTP server: keep-alive, refusals, aborted streams."""

import asyncio
from collections.abc import Awaitable, Callable

from moeagent.tools.sim.http import Connection, HttpRequest


async def with_server(
    handle: Callable[[HttpRequest], None],
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    connections: set[Connection] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(handle, connections), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await talk(reader, writer)
    writer.close()
    await writer.wait_closed()
    server.close()


def echo(http: HttpRequest) -> None:
    http.answer_json(200, {"path": http.path, "size": len(http.body)})


def test_requests_on_one_connection_are_answered_in_order() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"POST /one HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET /two?x=1 HTTP/1.1\r\n\r\n")
        assert b'{"path": "/one", "size": 3}' in await reader.readuntil(b"}")
        assert b'{"path": "/two", "size": 0}' in await reader.readuntil(b"}")

    asyncio.run(with_server(echo, talk))


def test_what_it_cannot_read_is_refused_and_the_connection_closed() -> None:
    for sent, status in (
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", b"411"),
        (b"POST / HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20_000, b"413"),
    ):

        async def talk(
            reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            sent: bytes = sent,
            status: bytes = status,
        ) -> None:
            writer.write(sent)
            assert (await reader.read()).startswith(b"HTTP/1.1 " + status)

        asyncio.run(with_server(echo, talk))


def test_a_client_that_leaves_in_mid_stream_is_noticed() -> None:
    async def scenario() -> None:
        left = asyncio.Event()

        def handle(http: HttpRequest) -> None:
            stream = http.stream()
            stream.on_abort = left.set
            stream.send(b"data: 1\n\n")

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await reader.readuntil(b"data: 1\n\n")

        await with_server(handle, talk)
        await asyncio.wait_for(left.wait(), 5)

    asyncio.run(scenario())
