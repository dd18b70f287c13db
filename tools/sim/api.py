"""The answers of the text endpoints, whole and streamed, in the engine's spelling."""

import json
from typing import Any

from moeagent.tools.sim.generation import Generation


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
