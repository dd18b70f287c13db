"""The one function that talks to the endpoint: a request in, a completion out, failures as data.

Whatever the endpoint does (down, slow, a drip of bytes, gigabytes, no JSON), it ends by the deadline.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moeagent.tools.llm.records import Completion, CompletionRequest

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MAX_BODY_BYTES = 4 * 1024 * 1024
"""A chat completion of 16,384 tokens is about 100 kB."""
DUMMY_KEY = "none"
"""Local servers ask for a key and accept any."""
_RETRIED_STATUS = frozenset({408, 409, 429})
_CHARS_PER_TOKEN = 4


class _MalformedBodyError(ValueError):
    """The endpoint answered with something that is no chat completion."""


def perform_completion(request: dict[str, Any], api_key: str | None) -> dict[str, Any]:
    """Perform a CompletionRequest and return a Completion, both as dicts; network failures do not raise.

    Retries connection errors, 408, 409, 429 and 5xx within the request's deadline, which bounds everything.
    """
    parsed = CompletionRequest.model_validate(request)
    started = time.monotonic()
    completion = asyncio.run(_bounded(parsed, api_key or DUMMY_KEY))
    if api_key:
        completion = completion.model_copy(update={"message": completion.message.replace(api_key, "***")})
    elapsed = round(time.monotonic() - started, 3)
    return completion.model_copy(update={"elapsed_s": elapsed}).model_dump(mode="json")


async def _bounded(request: CompletionRequest, api_key: str) -> Completion:
    from openai import AsyncOpenAI

    attempts: list[int] = []
    client = AsyncOpenAI(
        base_url=request.base_url, api_key=api_key, max_retries=0, timeout=request.deadline_s
    )
    try:
        async with asyncio.timeout(request.deadline_s), client:
            return await _with_retries(client, request, attempts)
    except TimeoutError:
        return Completion(
            failure="timeout",
            message=f"no complete answer from {request.base_url} within {request.deadline_s:g} s",
            attempts=max(len(attempts), 1),
        )


async def _with_retries(client: "AsyncOpenAI", request: CompletionRequest, attempts: list[int]) -> Completion:
    from openai import APIConnectionError, APIStatusError
    from tenacity import (
        AsyncRetrying,
        retry_if_exception,
        stop_after_attempt,
        wait_exponential,
    )

    policy = AsyncRetrying(
        retry=retry_if_exception(_is_transient),
        stop=stop_after_attempt(request.attempts),
        wait=wait_exponential(multiplier=0.2, max=5.0),
        reraise=True,
    )
    try:
        async for attempt in policy:
            with attempt:
                attempts.append(1)
                raw = await _read(client, request.body)
        completion = _parse(raw, request.body)
    except APIStatusError as error:
        status, text = error.status_code, str(error.message)[:500]
        completion = Completion(failure="http", http_status=status, message=f"status {status}: {text}")
    except APIConnectionError as error:
        reason = error.__cause__ or error
        message = f"cannot reach {request.base_url}: {reason}"[:500]
        completion = Completion(failure="connection", message=message)
    except _MalformedBodyError as error:
        completion = Completion(failure="malformed", message=str(error))
    return completion.model_copy(update={"attempts": len(attempts)})


def _is_transient(error: BaseException) -> bool:
    from openai import APIConnectionError, APIStatusError, APITimeoutError

    if isinstance(error, APITimeoutError):
        return False
    if isinstance(error, APIStatusError):
        return error.status_code in _RETRIED_STATUS or error.status_code >= 500
    return isinstance(error, APIConnectionError)


async def _read(client: "AsyncOpenAI", body: Mapping[str, Any]) -> bytes:
    """The raw body, bounded in size."""
    received = bytearray()
    async with client.chat.completions.with_streaming_response.create(**body) as response:
        async for chunk in response.iter_bytes():
            received += chunk
            if len(received) > MAX_BODY_BYTES:
                raise _MalformedBodyError(f"the answer is longer than {MAX_BODY_BYTES} bytes")
    return bytes(received)


def _parse(raw: bytes, body: Mapping[str, Any]) -> Completion:
    """The completion in a response body, read defensively: endpoints differ in what they leave out."""
    try:
        data = json.loads(raw)
        choice = data["choices"][0]
        message = choice.get("message") or {}
        content, reasoning = (
            message.get("content"),
            message.get("reasoning_content") or message.get("reasoning"),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        shown = raw[:120].decode("utf-8", "replace")
        raise _MalformedBodyError(f"the answer is no chat completion: {shown!r}") from error
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    texts = [text if isinstance(text, str) else "" for text in (content, reasoning)]
    return Completion(
        content=texts[0],
        reasoning=texts[1],
        finish_reason=str(choice.get("finish_reason") or ""),
        input_tokens=_count(usage.get("prompt_tokens"), json.dumps(body.get("messages", ""))),
        output_tokens=_count(usage.get("completion_tokens"), "".join(texts)),
    )


def _count(reported: Any, text: str) -> int:
    """Tokens as reported, else about four characters each."""
    valid = isinstance(reported, int) and not isinstance(reported, bool) and reported >= 0
    return reported if valid else len(text) // _CHARS_PER_TOKEN
