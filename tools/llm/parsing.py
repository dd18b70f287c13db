"""Finds the JSON object in what a model wrote: fences, <think>, trailing talk, reasoning_content, NaN."""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from moeagent.tools.llm.records import Completion

Answer = TypeVar("Answer", bound=BaseModel)

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_MAX_TEXT = 200_000
_MAX_STARTS = 200
"""Braces at which an object may begin that are tried before giving up."""


class UnusableAnswerError(ValueError):
    """The answer holds no object of the wanted form; the message can be shown to the model."""


def parse_answer(completion: Completion, form: type[Answer]) -> Answer:
    """The last object in the answer that fits the form; raises UnusableAnswerError with the reason."""
    problem = _no_object(completion)
    for text in (_visible(completion.content), completion.content, completion.reasoning):
        for found in reversed(list(_objects(text))):
            try:
                return form.model_validate(found)
            except ValidationError as error:
                problem = _in_words(error)
    raise UnusableAnswerError(problem)


def _visible(text: str) -> str:
    """The text without what the model thought aloud; a stray end tag ends a thought whose start is lost."""
    shown = _THINK.sub("", text)
    return shown.rsplit("</think>", 1)[-1]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost JSON object in the text."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    text = text[:_MAX_TEXT]
    position, starts = text.find("{"), 0
    while position >= 0 and starts < _MAX_STARTS:
        starts += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if isinstance(value, dict):
                yield value
        position = text.find("{", end)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _no_object(completion: Completion) -> str:
    if completion.finish_reason == "length":
        return "the answer was cut off at the token limit before the JSON object ended: answer more briefly"
    if not completion.content.strip():
        return "the answer is empty: answer with one JSON object"
    return "the answer holds no JSON object: answer with one JSON object and nothing else"


def _in_words(error: ValidationError) -> str:
    parts = []
    for item in error.errors()[:5]:
        place = ".".join(str(p) for p in item["loc"]) or "the object"
        parts.append(f"{place}: {item['msg']}")
    return "the JSON object does not fit the form: " + "; ".join(parts)
