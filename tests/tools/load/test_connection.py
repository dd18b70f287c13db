"""Where a body ends, whatever the framing and however the bytes are split over reads."""

import json
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from moeagent.tools.load.generator.connection import Connection
from moeagent.tools.load.generator.digest import digest
from moeagent.tools.load.generator.request import Request

TOKENS = ["the", "0\r\n\r\n", "ünï", '"quoted"', "data: x"]
JOB = {"exact": True}


class Ended:
    """The owner of a connection: keeps what has ended."""

    coalesced_cut = 0

    def __init__(self) -> None:
        self.over: list[Request] = []

    def finished(self, connection: Connection, request: Request) -> None:
        self.over.append(request)

    def start(self, connection: Connection, request: Request) -> None:
        raise AssertionError("nothing may be sent again")


def stream() -> bytes:
    def piece(text: str, finish: str | None = None) -> str:
        return "data: " + json.dumps({"choices": [{"text": text, "finish_reason": finish}]}) + "\n\n"

    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": len(TOKENS)}}
    texts = [piece(t) for t in TOKENS] + [
        piece("", "length"),
        f"data: {json.dumps(usage)}\n\n",
        "data: [DONE]\n\n",
    ]
    return "".join(texts).encode()


def answer(framing: str) -> bytes:
    head, body = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n", stream()
    if framing == "length":
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    if framing == "close":
        return f"{head}\r\n".encode() + body
    # Chunk borders fall inside events and inside characters.
    parts = [body[n : n + 37] for n in range(0, len(body), 37)]
    chunks = b"".join(f"{len(p):x}\r\n".encode() + p + b"\r\n" for p in parts)
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n"


def read(data: bytes, cuts: list[int], *, close: bool) -> list[Request]:
    owner = Ended()
    connection, request = Connection(owner, 0), Request(0, b"", len(TOKENS))
    connection.request = request
    edges = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    for start, end in pairwise(edges):
        assert not owner.over or start == len(data), "ended before the last byte"
        connection.data_received(data[start:end])
    if close:
        connection.connection_lost(None)
    return owner.over


@settings(deadline=None, max_examples=60)
@given(
    framing=st.sampled_from(["chunked", "length", "close"]),
    cuts=st.lists(st.integers(0, 10_000), max_size=40),
)
def test_every_split_of_every_framing_reads_the_same(framing: str, cuts: list[int]) -> None:
    (request,) = read(answer(framing), cuts, close=framing == "close")

    for full in (True, False):
        found = digest(request, JOB, 0, full)
        assert (found["kind"], found["out"], len(found["gaps"])) == ("", len(TOKENS), len(TOKENS))


def test_a_terminator_that_arrives_byte_by_byte_ends_the_body() -> None:
    data = answer("chunked")
    cuts = list(range(len(data) - 7, len(data)))

    assert len(read(data, cuts, close=False)) == 1


def test_a_connection_lost_in_mid_body_is_truncated() -> None:
    for framing in ("chunked", "length"):
        (request,) = read(answer(framing)[:-40], [], close=True)

        assert digest(request, JOB, 0, True)["kind"] == "truncated"


def test_a_body_that_closes_early_without_framing_lacks_its_finish() -> None:
    (request,) = read(answer("close")[:300], [], close=True)

    assert digest(request, JOB, 0, True)["kind"] == "truncated"


def test_bytes_that_are_no_http_are_said_to_be_so() -> None:
    (request,) = read(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", [], close=False)

    assert request.failure == "not_http"
