"""A chat model behind one effect: bounded, probed once, with one repair turn for an unusable answer."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from moeagent.memory.errors import ModelEndpointError
from moeagent.tools.llm.parsing import Answer, UnusableAnswerError, parse_answer
from moeagent.tools.llm.records import (
    CallLimits,
    Completion,
    CompletionRequest,
    Endpoint,
    Message,
    ResponseFormat,
    Spent,
)

Complete = Callable[[dict[str, Any]], dict[str, Any]]
"""Performs one CompletionRequest and returns one Completion, both as plain dicts; the loop records it."""
FORMATS: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "plain")
ATTEMPTS = 3
"""Requests over the wire for one completion, so that an endpoint that is down costs few."""
PROBE_TOKENS = 1024
PROBE_TEXT = 'Answer with this JSON object and nothing else: {"ready": true}'
REPAIR_TEXT = "Your answer could not be used: {problem}. Answer again with one JSON object of the asked form."


class _Ready(BaseModel):
    ready: bool


class ChatModel:
    """One model at one endpoint; its counters and the probed format live as long as the run."""

    def __init__(self, endpoint: Endpoint, limits: CallLimits, complete: Complete) -> None:
        self.endpoint, self.limits = endpoint, limits
        self._complete = complete
        self.spent = Spent()
        self.format: ResponseFormat | None = None
        """How the endpoint can be held to a form; None before the probe."""
        self.closed = ""
        """Why the model is not asked any more in this run; empty while it is."""
        self._size_field = "max_tokens"

    def renew(self, limits: CallLimits) -> None:
        """Other limits from here on; a model that is closed because one was reached is open again."""
        if self.closed and self.closed == self.spent.reached(self.limits):
            self.closed = ""
        self.limits = limits

    def ask(self, messages: Sequence[Message], form: type[Answer]) -> Answer:
        """The model's answer in the wanted form.

        Raises ModelEndpointError when the endpoint fails or a limit is reached, and from then on, without
        another call; UnusableAnswerError when the answer cannot be used even after one repair turn.
        """
        if self.closed:
            raise ModelEndpointError(self.closed)
        try:
            return self._ask(messages, form)
        except ModelEndpointError as error:
            self.closed = str(error)
            raise

    def _ask(self, messages: Sequence[Message], form: type[Answer]) -> Answer:
        if self.format is None:
            self.format = self._probe()
        first = self._call(messages, form, self.format, self.endpoint.max_tokens)
        self._must_have_answered(first)
        try:
            return parse_answer(first, form)
        except UnusableAnswerError as error:
            repair = [
                *messages,
                *_said(first),
                Message(role="user", content=REPAIR_TEXT.format(problem=error)),
            ]
        second = self._call(repair, form, self.format, self.endpoint.max_tokens)
        self._must_have_answered(second)
        return parse_answer(second, form)

    def _probe(self) -> ResponseFormat:
        """The strictest format that the endpoint takes and answers in."""
        message = Message(role="user", content=PROBE_TEXT)
        for name in FORMATS:
            completion = self._call([message], _Ready, name, PROBE_TOKENS)
            if completion.unsupported and name != FORMATS[-1]:
                continue
            self._must_have_answered(completion)
            try:
                parse_answer(completion, _Ready)
            except UnusableAnswerError:
                continue
            return name
        return FORMATS[-1]

    def _call(
        self, messages: Sequence[Message], form: type[BaseModel], name: ResponseFormat, tokens: int
    ) -> Completion:
        completion = self._one_call(messages, form, name, tokens)
        if completion.unsupported and "max_completion_tokens" in completion.message:
            self._size_field = "max_completion_tokens"
            completion = self._one_call(messages, form, name, tokens)
        return completion

    def _one_call(
        self, messages: Sequence[Message], form: type[BaseModel], name: ResponseFormat, tokens: int
    ) -> Completion:
        reached = self.spent.reached(self.limits)
        if reached is not None:
            raise ModelEndpointError(reached)
        body = {
            "model": self.endpoint.model,
            "messages": [message.model_dump() for message in messages],
            self._size_field: self._affordable(tokens),
            **_format_field(name, form),
        }
        request = CompletionRequest(
            base_url=self.endpoint.base_url, deadline_s=self._deadline(), attempts=self._attempts(), body=body
        )
        completion = Completion.model_validate(self._complete(request.model_dump(mode="json")))
        self.spent = self.spent.plus(completion, self.endpoint)
        return completion

    def _affordable(self, tokens: int) -> int:
        """The answer's length within what is left of the run's tokens."""
        return tokens if self.limits.tokens is None else min(tokens, self.limits.tokens - self.spent.tokens)

    def _attempts(self) -> int:
        return ATTEMPTS if self.limits.calls is None else min(ATTEMPTS, self.limits.calls - self.spent.calls)

    def _deadline(self) -> float:
        """The endpoint's deadline, or what is left of the run's waiting time."""
        if self.limits.wall_s is None:
            return self.endpoint.deadline_s
        return round(min(self.endpoint.deadline_s, self.limits.wall_s - self.spent.wall_s), 3)

    def _must_have_answered(self, completion: Completion) -> None:
        if completion.failure:
            raise ModelEndpointError(
                f"the language model at {self.endpoint.base_url} did not answer ({completion.failure}, "
                f"{completion.attempts} calls): {completion.message}. Check base_url, model and key."
            )


def _said(completion: Completion) -> list[Message]:
    """What the model said, so that it sees what was wrong; an empty turn is refused by some endpoints."""
    text = completion.content.strip()[:4000]
    return [Message(role="assistant", content=text)] if text else []


def _format_field(name: ResponseFormat, form: type[BaseModel]) -> dict[str, Any]:
    if name == "plain":
        return {}
    if name == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": form.__name__.strip("_").lower(), "schema": form.model_json_schema()}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
