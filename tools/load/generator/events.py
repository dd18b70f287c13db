"""What a streamed body says: chunks, server-sent events, and the events of the known APIs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from moeagent.tools.load.generator.connection import LAST_CHUNK, TAIL
from moeagent.tools.load.generator.request import Request


class Reading:
    """What one answer's events say, in order of arrival."""

    def __init__(self) -> None:
        self.stamps: list[int] = []
        self.tokens: list[int] = []
        self.texts: list[str] = []
        self.per_read: dict[int, int] = {}
        self.finish = self.error = ""
        self.usage: dict[str, int] = {}
        self.clean = True
        self.events = 0

    def add_text(self, stamp: int, read: int, tokens: int = 0) -> None:
        """One event with text; tokens is 0 when the event does not say how many."""
        self.stamps.append(stamp)
        self.tokens.append(tokens)
        self.per_read[read] = self.per_read.get(read, 0) + 1


def unchunk(raw: bytes, at: int) -> tuple[list[tuple[int, bytes]], bool]:
    """(offset in raw, payload) of each chunk from `at`, and whether the last chunk was seen."""
    pieces: list[tuple[int, bytes]] = []
    while True:
        line_end = raw.find(b"\r\n", at)
        if line_end < 0:
            return pieces, False
        try:
            size = int(raw[at:line_end].partition(b";")[0], 16)
        except ValueError:
            return pieces, False
        if size == 0:
            return pieces, True
        start = line_end + 2
        pieces.append((start, raw[start : start + size]))
        at = start + size + 2
        if at > len(raw):
            return pieces, False


def split_events(pieces: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """(offset of its last byte in raw, event) of each server-sent event, also when split over chunks."""
    held = b""
    for at, piece in pieces:
        if not held and piece.find(b"\n\n") == len(piece) - 2 and len(piece) > 1:
            yield at + len(piece) - 1, piece
            continue
        before, held = len(held), (held + piece).replace(b"\r\n", b"\n")
        position = 0
        while True:
            end = held.find(b"\n\n", position)
            if end < 0:
                break
            yield at + max(0, min(end + 1 - before, len(piece) - 1)), held[position : end + 2]
            position = end + 2
        held = held[position:]
    # Without its blank line an event is only whole when the server forgot the line, not when it died.
    if held.rstrip().endswith((b"}", b"[DONE]")):
        yield pieces[-1][0] + len(pieces[-1][1]) - 1, held


def event_data(event: bytes) -> bytes:
    """The data of an event; llama.cpp once sent errors in a field of that name."""
    parts = []
    for line in event.split(b"\n"):
        name, _, value = line.partition(b":")
        if name in (b"data", b"error"):
            parts.append(value.strip())
    return b"\n".join(parts)


TEXT = re.compile(rb'"(?:content|text|reasoning_content|reasoning)":"(?!")')
PLAIN_MARKS = (b'"finish_reason":null', b'"stop":false')


def is_plain(event: bytes) -> bool:
    """True when the bytes show that the event is a piece of text and nothing else, without parsing it."""
    if not (PLAIN_MARKS[0] in event or PLAIN_MARKS[1] in event):
        return False
    return b'"usage":{' not in event and b'"error"' not in event and TEXT.search(event) is not None


def text_of(event: Any) -> str:
    """The new text in an event of any of the APIs."""
    choices = event.get("choices")
    if isinstance(choices, list):
        choice = choices[0] if choices else {}
        delta = choice.get("delta") or choice
        parts = (
            delta.get("reasoning_content") or delta.get("reasoning"),
            delta.get("content"),
            delta.get("text"),
        )
        return "".join(p for p in parts if isinstance(p, str))
    return str(event.get("text") or event.get("content") or "")


def usage_of(event: Any) -> dict[str, int]:
    """prompt, out and cached tokens that an event of any of the APIs states."""
    usage, meta = event.get("usage") or {}, event.get("meta_info") or {}
    if usage:
        details = usage.get("prompt_tokens_details") or {}
        found = (usage.get("prompt_tokens"), usage.get("completion_tokens"), details.get("cached_tokens"))
    elif meta:
        found = (meta.get("prompt_tokens"), meta.get("completion_tokens"), meta.get("cached_tokens"))
    elif event.get("stop") is True:
        timings = event.get("timings") or {}
        found = (event.get("tokens_evaluated"), event.get("tokens_predicted"), timings.get("cache_n"))
    else:
        return {}
    return {k: v for k, v in zip(("prompt", "out", "cached"), found) if isinstance(v, int)}  # noqa: B905


def finish_of(event: Any) -> str:
    """Why the server says that it stopped; empty while it goes on."""
    choices = event.get("choices")
    reason: Any = None
    if isinstance(choices, list) and choices:
        reason = choices[0].get("finish_reason")
    elif "meta_info" in event:
        reason = event["meta_info"].get("finish_reason")
    elif event.get("stop") is True:
        reason = event.get("stop_type") or "stop"
    if isinstance(reason, dict):
        message = reason.get("message", "")
        return f"{reason.get('type')}: {message}" if message else str(reason.get("type"))
    return str(reason) if reason else ""


def read_event(reading: Reading, stamp: int, read: int, data: bytes) -> None:
    """Take in one event by a full parse."""
    try:
        event = json.loads(data)
    except ValueError:
        reading.error = reading.error or f"event is no JSON: {data[:80].decode('utf-8', 'replace')}"
        return
    if not isinstance(event, dict):
        reading.error = reading.error or f"event is no object: {data[:80].decode('utf-8', 'replace')}"
        return
    failure = event.get("error") or (event if event.get("object") == "error" else None)
    if failure:
        message = failure.get("message", failure) if isinstance(failure, dict) else failure
        reading.error = reading.error or str(message)
        return
    before, usage = reading.usage.get("out", 0), usage_of(event)
    reading.usage.update(usage)
    reading.finish = finish_of(event) or reading.finish
    text = text_of(event)
    if text:
        new = usage["out"] - before if "out" in usage else 0
        reading.add_text(stamp, read, max(0, new))
        reading.texts.append(text)


def read_answer(request: Request, full: bool) -> Reading:
    """Events of a streamed answer; full parses every event, otherwise plain ones are told by their bytes."""
    reading, raw = Reading(), b"".join(request.chunks)
    if request.chunked:
        pieces, reading.clean = unchunk(raw, request.body_at)
    else:
        pieces = [(request.body_at, raw[request.body_at :])]
    ends, total = [], 0
    for chunk in request.chunks:
        total += len(chunk)
        ends.append(total)
    read = 0
    for at, event in split_events(pieces) if pieces else ():
        while ends[read] <= at:
            read += 1
        if not full and is_plain(event):
            reading.events += 1
            reading.add_text(request.stamps[read], read)
            continue
        data = event_data(event)
        reading.events += bool(data)
        if data and data != b"[DONE]":
            read_event(reading, request.stamps[read], read, data)
    return reading


META = re.compile(rb'"completion_tokens":\s*(\d+)')
META_PROMPT = re.compile(rb'"prompt_tokens":\s*(\d+)')
META_CACHED = re.compile(rb'"cached_tokens":\s*(\d+)')
META_FINISH = re.compile(rb'"finish_reason":\s*\{"type":\s*"(\w+)"(?:,\s*"message":\s*"([^"]*))?')


def read_cumulative(request: Request) -> Reading:
    """Events of SGLang's /generate, whose text may have been cut: only the tails are read."""
    reading, out, tail = Reading(), 0, b""
    for read, chunk in enumerate(request.chunks):
        tail = (tail + chunk)[-2 * TAIL :]
        found = META.findall(chunk) or META.findall(tail)
        new = int(found[-1]) - out if found else 0
        if new > 0:
            reading.add_text(request.stamps[read], read, new)
            reading.events += 1
            out += new
        problem = re.search(rb'data: \{"error":(.*)', chunk)
        if problem:
            reading.error = problem.group(1)[:300].decode("utf-8", "replace")
    finish = META_FINISH.search(tail)
    if finish:
        kind, message = finish.group(1).decode(), (finish.group(2) or b"").decode("utf-8", "replace")
        reading.finish = f"{kind}: {message}" if message else kind
    reading.usage = {"out": out} if out else {}
    for name, pattern in (("prompt", META_PROMPT), ("cached", META_CACHED)):
        match = pattern.search(tail)
        if match:
            reading.usage[name] = int(match.group(1))
    reading.clean = tail.endswith(LAST_CHUNK)
    return reading
