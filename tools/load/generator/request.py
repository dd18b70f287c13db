"""What a job says, and one request of it: what goes out, when, and what came back."""

from __future__ import annotations

import json
import time
from array import array
from typing import Any
from urllib.parse import urlsplit

Job = dict[str, Any]
"""url, path, headers, verify_tls, ca_file, keep_alive: where to send.
template: the body, with "$PROMPT" and "$OUT" where they go; cumulative: every event repeats the text,
and only tails are kept; repeats: it does, and all is kept.
prompts: [{prompt, out}] or random: {seed, vocabulary, words, out, prefix_words, groups, ids}: what to send.
requests or duration_s; concurrency; arrivals: seconds after the start (open loop) or null (closed loop).
exact: the answer must have exactly `out` tokens. keep_text: return the text for a tokenizer.
warmup: {min_waves, max_waves, tolerance, out, max_s} or null; flush: path to POST to after it, or null.
timeouts: {connect, first, stall} and deadline_s in seconds; processes; realtime: ask for it while measuring.
stop: {max_failed, below_events_s, after_s}: give up once the answer is clear; each key may be null."""

Answer = dict[str, Any]
clock = time.perf_counter_ns
"""CLOCK_MONOTONIC: it is the same in every process of the machine and no time service moves it."""


class Request:
    """One request: what goes out, when, and what came back."""

    __slots__ = (
        "asked", "body_at", "chunked", "chunks", "content_type", "detail", "due", "end", "failure",
        "fresh", "index", "retried", "sent", "slot", "spilled", "stamps", "status", "wire",
    )  # fmt: skip

    def __init__(self, index: int, wire: bytes, asked: int, due: int = 0) -> None:
        self.index, self.wire, self.asked, self.due = index, wire, asked, due
        self.stamps: array[int] = array("q")
        self.chunks: list[bytes] = []
        self.sent = self.end = self.status = self.body_at = 0
        self.slot = -1
        self.content_type = self.failure = self.detail = ""
        self.retried = self.fresh = self.chunked = False
        self.spilled: tuple[int, list[int]] | None = None

    def fail(self, kind: str, detail: str = "") -> None:
        """Mark as failed; the first reason stands."""
        if not self.failure:
            self.failure, self.detail = kind, detail


def make_wire(job: Job, prompt: Any, out: int) -> bytes:
    """Head and body of one request."""
    body = json.dumps(job["template"]).replace('"$OUT"', str(out)).replace('"$PROMPT"', json.dumps(prompt))
    parts = urlsplit(job["url"])
    head = [f"POST {job['path']} HTTP/1.1", f"Host: {parts.netloc.rpartition('@')[2]}"]
    head += [f"{name}: {value}" for name, value in job["headers"].items()]
    head += ["Content-Type: application/json", "Accept: text/event-stream", f"Content-Length: {len(body)}"]
    if not job["keep_alive"]:
        head.append("Connection: close")
    return ("\r\n".join(head) + "\r\n\r\n" + body).encode("ascii")
