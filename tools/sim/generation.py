"""One request for text: what was asked, by any of the three endpoints, and how far it is."""

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


def _asked(form: str, body: dict[str, Any], limits: Limits) -> tuple[Prompt, int, bool]:
    """Prompt, most tokens, and whether the answer goes on beyond its natural end."""
    if form == "generate":
        sampling = _object(body, "sampling_params")
        wanted = _integer(sampling, "max_new_tokens", DEFAULT_GENERATE_TOKENS)
        prompt = _prompt(body.get("input_ids") or body.get("text"))
        return prompt, wanted, bool(sampling.get("ignore_eos"))
    prompt = _chat_prompt(body.get("messages")) if form == "chat" else _prompt(body.get("prompt"))
    default = limits.context if form == "chat" else DEFAULT_COMPLETION_TOKENS
    wanted = _integer(body, "max_completion_tokens", _integer(body, "max_tokens", default))
    return prompt, wanted, bool(body.get("ignore_eos"))


def parse_generation(http: HttpRequest, limits: Limits) -> Generation:
    """A generation from one of the three endpoints. Raises BadRequestError."""
    try:
        body = http.json()
    except ValueError as error:
        raise BadRequestError(f"The request body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("The request body must be a JSON object.")
    form = {"/v1/completions": "completion", "/v1/chat/completions": "chat"}.get(http.path, "generate")
    prompt, wanted, ignore_eos = _asked(form, body, limits)
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
