"""Events of the known APIs, as their servers write them."""

import json
from pathlib import Path

import pytest

from moeagent.tools.load.generator.events import Reading, is_plain, read_answer, read_event
from moeagent.tools.load.generator.request import Request

FIXTURES = Path(__file__).parents[2] / "fixtures" / "load" / "streams"
CASES = json.loads((FIXTURES / "cases.json").read_text())


def request_of(body: bytes) -> Request:
    request = Request(0, b"", 4)
    for line in body.split(b"\n\n"):
        if line:
            request.stamps.append(len(request.chunks) * 1_000_000)
            request.chunks.append(line + b"\n\n")
    return request


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
@pytest.mark.parametrize("full", [True, False])
def test_streams_of_the_known_servers(case: dict, full: bool) -> None:
    reading = read_answer(request_of("".join(f"data: {e}\n\n" for e in case["events"]).encode()), full)

    assert len(reading.stamps) == case["texts"]
    assert [s // 1_000_000 for s in reading.stamps][:1] == case["first_text_at"]
    assert reading.finish == case["finish"]
    assert reading.usage == case["usage"]
    assert bool(reading.error) == case["error"]


@pytest.mark.parametrize(
    ("event", "plain"),
    [
        (b'data: {"choices":[{"delta":{"content":" a"},"finish_reason":null}]}', True),
        (b'data: {"choices":[{"delta":{"content":""},"finish_reason":null}]}', False),
        (b'data: {"choices":[{"text":" a","finish_reason":"length"}]}', False),
        (b'data: {"choices":[{"text":"x","finish_reason":null}],"usage":{"completion_tokens":1}}', False),
        (b'data: {"content":" a","stop":false}', True),
        (
            b'data: {"choices":[{"delta":{"content":null,"reasoning_content":"hm"},"finish_reason":null}]}',
            True,
        ),
        (b'data: {"choices":[{"delta":{"role":"assistant"},"finish_reason":null}]}', False),
        (b'data: {"error":{"message":"\\"content\\":\\"x\\"","finish_reason":null}}', False),
    ],
)
def test_only_pieces_of_text_skip_the_parser(event: bytes, plain: bool) -> None:
    assert is_plain(event) is plain


@pytest.mark.parametrize("data", [b"{broken", b"[1]", b'"text"', b"null"])
def test_hostile_events_are_errors_not_exceptions(data: bytes) -> None:
    reading = Reading()

    read_event(reading, 0, 0, data)

    assert reading.error
