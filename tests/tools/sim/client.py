"""A plain asyncio client for the tests of the simulated server."""

import asyncio
import json
import time
from dataclasses import dataclass, field


@dataclass
class Outcome:
    completed: int = 0
    failed: int = 0
    tokens: int = 0
    duration: float = 0.0
    ttfts: list[float] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)


async def _one(port: int, number: int, input_len: int, output_len: int, outcome: Outcome) -> None:
    prompt = " ".join(f"w{number}x{word}"[:7] for word in range(input_len))
    body = json.dumps(
        {"prompt": prompt, "max_tokens": output_len, "stream": True, "ignore_eos": True,
         "stream_options": {"include_usage": True}}
    ).encode()  # fmt: skip
    began = time.monotonic()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % len(body)
            + body
        )
        await reader.readuntil(b"\r\n\r\n")
        first, usage, done = None, None, False
        while line := await reader.readline():
            if not line.startswith(b"data: "):
                continue
            first = first or time.monotonic()
            if line.startswith(b"data: [DONE]"):
                done = True
            elif b'"usage":{' in line:
                usage = json.loads(line[6:])["usage"]
        writer.close()
    except (OSError, asyncio.IncompleteReadError):
        done, usage, first = False, None, None
    if done and usage and first:
        outcome.completed += 1
        outcome.tokens += usage["completion_tokens"]
        outcome.ttfts.append(first - began)
    else:
        outcome.failed += 1


async def rung(
    port: int, concurrency: int, requests: int, input_len: int, output_len: int, first: int = 0
) -> Outcome:
    """A closed loop of `requests` requests at one concurrency."""
    outcome, numbers = Outcome(), iter(range(first, first + requests))

    async def slot() -> None:
        for number in numbers:
            await _one(port, number, input_len, output_len, outcome)

    began = time.monotonic()
    await asyncio.gather(*(slot() for _ in range(concurrency)))
    outcome.duration = time.monotonic() - began
    return outcome
