"""Greedy answers over real HTTP, so many requests in flight at a time."""

import json
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from moeagent.memory.errors import InputError
from moeagent.tools.output_check.sample import Answer, BatchSample, OutputSample

BATCH_SIZES = (1, 8, 64, 256)
MAX_ANSWER_BYTES = 4_000_000


class _Endpoint:
    """One server's completions route with a deadline for everything."""

    def __init__(self, url: str, model: str, max_tokens: int, deadline: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{url!r} is not an http or https address: write http://HOST:PORT")
        self.secure, self.host, self.port = parts.scheme == "https", parts.hostname, parts.port
        self.path = parts.path.rstrip("/").removesuffix("/v1") + "/v1/completions"
        self.model, self.max_tokens, self.deadline = model, max_tokens, deadline
        self.offers_logprobs = True

    def ask(self, number: int, prompt: str) -> Answer:
        """One non-streaming request at temperature 0; what went wrong is in the answer's error."""
        try:
            status, body = self._post(prompt)
            if status == 400 and self.offers_logprobs:
                self.offers_logprobs = False
                status, body = self._post(prompt)
            return read_answer(number, status, body)
        except (OSError, HTTPException) as e:
            return Answer(prompt=number, text="", error=f"{type(e).__name__}: {e}")

    def _post(self, prompt: str) -> tuple[int, bytes]:
        kind = HTTPSConnection if self.secure else HTTPConnection
        connection = kind(self.host, self.port, timeout=self._left())
        body = {"model": self.model, "prompt": prompt, "max_tokens": self.max_tokens, "temperature": 0}
        if self.offers_logprobs:
            body["logprobs"] = 1
        try:
            connection.request("POST", self.path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, self._read(response)
        finally:
            connection.close()

    def _read(self, response: HTTPResponse) -> bytes:
        parts: list[bytes] = []
        while (part := response.read1(65536)) and sum(map(len, parts)) < MAX_ANSWER_BYTES:
            parts.append(part)
            self._left()
        return b"".join(parts)

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no time was left")
        return left


def collect(
    url: str,
    *,
    model: str,
    prompts: Sequence[str],
    batch_sizes: Sequence[int] = BATCH_SIZES,
    max_tokens: int = 64,
    timeout_s: float = 300.0,
) -> OutputSample:
    """Answers of every prompt at every batch size; small sets are repeated until the batch is full.

    url: base address of an OpenAI-compatible server (SGLang, vLLM, llama.cpp all have /v1/completions).
    timeout_s: for everything; what was not answered by then is an answer with an error, never a hang.
    Raises InputError for a bad address or an empty prompt set.
    """
    if not prompts:
        raise InputError("the output check has no prompts: give at least one")
    endpoint = _Endpoint(url, model, max_tokens, time.monotonic() + timeout_s)
    return OutputSample(batches=tuple(_batch(endpoint, prompts, size) for size in batch_sizes))


def _batch(endpoint: _Endpoint, prompts: Sequence[str], size: int) -> BatchSample:
    count = max(size, len(prompts))
    with ThreadPoolExecutor(max_workers=size) as pool:
        jobs = [pool.submit(endpoint.ask, i, prompts[i % len(prompts)]) for i in range(count)]
        return BatchSample(batch_size=size, answers=tuple(job.result() for job in jobs))


def read_answer(number: int, status: int, body: bytes) -> Answer:
    """An OpenAI completion as an answer; anything else as an answer with an error."""
    try:
        record = json.loads(body)
    except ValueError:
        record = None
    choices = record.get("choices") if isinstance(record, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if status != 200 or not isinstance(choice, dict) or not isinstance(choice.get("text"), str):
        text = body[:200].decode(errors="replace")
        return Answer(prompt=number, text="", error=f"status {status}, no completion: {text}")
    return Answer(
        prompt=number,
        text=choice["text"],
        token_ids=_token_ids(choice.get("token_ids")),
        logprobs=_logprobs(choice.get("logprobs")),
    )


def _token_ids(value: Any) -> tuple[int, ...] | None:
    good = isinstance(value, list) and all(isinstance(i, int) for i in value)
    return tuple(value) if good else None


def _logprobs(value: Any) -> tuple[float | None, ...] | None:
    """Of an OpenAI completion, or of a chat-like one as llama.cpp answers; null and NaN become None."""
    if not isinstance(value, dict):
        return None
    values = value.get("token_logprobs")
    if values is None and isinstance(value.get("content"), list):
        values = [t.get("logprob") for t in value["content"] if isinstance(t, dict)]
    if not isinstance(values, list):
        return None
    return tuple(x if isinstance(x, int | float) and math.isfinite(x) else None for x in values)
