"""The HTTP API of the engine: OpenAI completions and chat, /generate, health, information, metrics."""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moeagent.tools.sim.http import HttpRequest, Stream
from moeagent.tools.sim.scheduler import Request
from moeagent.tools.sim.text import Answer, Prompt, count_tokens

DEFAULT_COMPLETION_TOKENS = 16
DEFAULT_GENERATE_TOKENS = 128


class BadRequestError(Exception):
    """The request cannot be served; the text goes to the client."""


@dataclass(eq=False)
class Generation:
    """One request being answered."""

    form: str
    """completion, chat or generate."""
    request: Request
    answer: Answer
    http: HttpRequest
    model: str
    streams: bool
    with_usage: bool
    finish_reason: str
    interval: int
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))
    stream: Stream | None = None
    text: str = ""
    pending: str = ""
    prefix: bytes = b""
    suffix: bytes = b""

    @property
    def usage(self) -> dict[str, Any]:
        """Token counts as OpenAI spells them."""
        prompt, produced = self.request.prompt_tokens, self.request.produced
        return {
            "prompt_tokens": prompt, "total_tokens": prompt + produced, "completion_tokens": produced,
            "prompt_tokens_details": None, "reasoning_tokens": 0,
        }  # fmt: skip


def _integer(body: dict[str, Any], name: str, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadRequestError(f"{name} must be at least 1, got {value!r}.")
    return value


def _object(body: dict[str, Any], name: str) -> dict[str, Any]:
    value = body.get(name) or {}
    if not isinstance(value, dict):
        raise BadRequestError(f"{name} must be an object, got {value!r}.")
    return value


def _prompt(value: Any) -> Prompt:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | list):
        value = value[0]
    if isinstance(value, str) and value:
        return value
    if isinstance(value, list) and value and all(isinstance(token, int) for token in value):
        return value
    raise BadRequestError("Either input_ids or a non-empty text prompt should be provided, one at a time.")


def _chat_prompt(messages: Any) -> str:
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("messages must be a non-empty list.")
    parts = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
        if not isinstance(content, str):
            raise BadRequestError("each message needs a text content.")
        parts.append(f"<|{message.get('role', 'user')}|>{content}")
    return "".join(parts) + "<|assistant|>"


@dataclass(frozen=True)
class Limits:
    """What the server accepts, and how it answers."""

    model: str
    context: int
    interval: int
    garbage: bool
    cached: Callable[[Prompt, int], int]


def parse_generation(http: HttpRequest, limits: Limits) -> Generation:
    """A generation from one of the three endpoints. Raises BadRequestError."""
    try:
        body = http.json()
    except ValueError as error:
        raise BadRequestError(f"The request body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("The request body must be a JSON object.")
    form = {"/v1/completions": "completion", "/v1/chat/completions": "chat"}.get(http.path, "generate")
    if form == "generate":
        prompt = _prompt(body.get("input_ids") or body.get("text"))
        sampling = _object(body, "sampling_params")
        wanted, ignore_eos = (
            _integer(sampling, "max_new_tokens", DEFAULT_GENERATE_TOKENS),
            sampling.get("ignore_eos"),
        )
    else:
        prompt = _chat_prompt(body.get("messages")) if form == "chat" else _prompt(body.get("prompt"))
        default = limits.context if form == "chat" else DEFAULT_COMPLETION_TOKENS
        wanted = _integer(body, "max_completion_tokens", _integer(body, "max_tokens", default))
        ignore_eos = body.get("ignore_eos")
    tokens = count_tokens(prompt)
    if tokens >= limits.context:
        raise BadRequestError(
            f"Input length ({tokens} tokens) exceeds the maximum allowed length ({limits.context - 1} "
            "tokens). "
            f"Use a shorter input or enable --allow-auto-truncate."
        )
    answer = Answer(prompt, garbage=limits.garbage)
    allowed = min(wanted, limits.context - tokens)
    length = allowed if ignore_eos else min(allowed, answer.natural_length)
    return Generation(
        form=form, request=Request(tokens, limits.cached(prompt, tokens), length), answer=answer, http=http,
        model=str(body.get("model") or limits.model), streams=bool(body.get("stream")),
        with_usage=bool(_object(body, "stream_options").get("include_usage")),
        finish_reason="length" if length == allowed else "stop", interval=limits.interval,
    )  # fmt: skip


# answers


def _choice(generation: Generation, text: str, finish: str | None) -> dict[str, Any]:
    if generation.form == "chat":
        delta = {"role": None, "content": text, "reasoning_content": None, "tool_calls": None}
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "matched_stop": None}
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "matched_stop": None}


def _event(generation: Generation, choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
    kind = "chat.completion.chunk" if generation.form == "chat" else "text_completion"
    body = {
        "id": generation.id, "object": kind, "created": generation.created, "model": generation.model,
        "choices": choices, "usage": usage,
    }  # fmt: skip
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def _generate_body(generation: Generation, finish: Any) -> dict[str, Any]:
    request = generation.request
    meta = {
        "id": generation.id, "finish_reason": finish, "prompt_tokens": request.prompt_tokens,
        "weight_version": "default",
        "total_retractions": 0, "completion_tokens": request.produced, "cached_tokens": request.cached_tokens,
        "e2e_latency": None,
    }  # fmt: skip
    return {"text": generation.text, "meta_info": meta}


_MARK = "\x01"


def begin(generation: Generation) -> None:
    """Open the stream of a generation, if it streams."""
    if not generation.streams:
        return
    generation.stream = generation.http.stream()
    if generation.form != "generate":
        template = _event(generation, [_choice(generation, _MARK, None)], None)
        generation.prefix, _, generation.suffix = template.partition(json.dumps(_MARK).encode()[1:-1])
    if generation.form == "chat":
        first = {"role": "assistant", "content": "", "reasoning_content": None, "tool_calls": None}
        choice = {"index": 0, "delta": first, "logprobs": None, "finish_reason": None, "matched_stop": None}
        generation.stream.send(_event(generation, [choice], None))


def emit(generation: Generation, tokens: int) -> None:
    """Send the next tokens; the words hold no character that JSON escapes."""
    word = "".join(generation.answer.next_word() for _ in range(tokens))
    if generation.form == "generate" or not generation.streams:
        generation.text += word
    if generation.stream is None:
        return
    generation.pending += word
    if generation.form == "completion" and generation.request.produced == generation.request.max_tokens:
        return
    if (
        generation.request.produced % generation.interval
        and generation.request.produced < generation.request.max_tokens
    ):
        return
    if generation.form == "generate":
        body = json.dumps(_generate_body(generation, None), separators=(",", ":")).encode()
        generation.stream.send(b"data: " + body + b"\n\n")
    else:
        generation.stream.send(generation.prefix + generation.pending.encode() + generation.suffix)
    generation.pending = ""


def finish(generation: Generation) -> None:
    """End the answer."""
    reason = generation.finish_reason
    if generation.form == "generate":
        detail = (
            {"type": reason, "length": generation.request.max_tokens}
            if reason == "length"
            else {"type": "stop"}
        )
        body = _generate_body(generation, detail)
        if generation.stream is None:
            generation.http.answer_json(200, body)
            return
        generation.stream.send(b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n")
    elif generation.stream is None:
        generation.http.answer_json(200, _whole(generation))
        return
    else:
        generation.stream.send(_event(generation, [_choice(generation, generation.pending, reason)], None))
        if generation.with_usage:
            generation.stream.send(_event(generation, [], generation.usage))
    generation.stream.send(b"data: [DONE]\n\n")
    generation.stream.end()


def _whole(generation: Generation) -> dict[str, Any]:
    chat = generation.form == "chat"
    choice: dict[str, Any] = {
        "index": 0,
        "logprobs": None,
        "finish_reason": generation.finish_reason,
        "matched_stop": None,
    }
    message = {"role": "assistant", "content": generation.text, "reasoning_content": None, "tool_calls": None}
    choice |= {"message": message} if chat else {"text": generation.text}
    return {
        "id": generation.id, "object": "chat.completion" if chat else "text_completion",
        "created": generation.created,
        "model": generation.model, "choices": [choice], "usage": generation.usage,
        "metadata": {"weight_version": "default"},
    }  # fmt: skip
