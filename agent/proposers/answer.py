"""A language model's answer and its way into a hypothesis: text cleaned, values typed, numbers ordered."""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.view import PriorFinding
from moeagent.memory.records import ConfigChange, FlagValue, Knob, PredictedEffect, VerdictKind

MAX_PARTS = 12
"""A proposal with more changes than this is no hypothesis."""
MAX_EFFECT = 20.0
_CONTROL = re.compile(r"[^\x20-\x7e\u00a0-\u024f\u2010-\u2027]+")


class PredictedAt(BaseModel):
    """The model's number at one concurrency."""

    model_config = ConfigDict(extra="ignore")

    concurrency: int = Field(gt=0)
    effect: float
    low: float
    high: float


class ModelAnswer(BaseModel):
    """One flat object for every answer; an action uses the fields that it needs."""

    model_config = ConfigDict(extra="ignore")

    action: Literal["propose", "look_up", "nothing"] = "propose"
    tool: str = ""
    query: str = ""
    statement: str = ""
    reason: str = ""
    category: str = ""
    set: list[str] = Field(default_factory=list)
    remove: list[str] = Field(default_factory=list)
    predicted: list[PredictedAt] = Field(default_factory=list)
    refuted_by: str = ""


class AnswerError(ValueError):
    """The answer cannot be read as a hypothesis; the message can be shown to the model."""


def change_of(answer: ModelAnswer, question: Question) -> ConfigChange:
    """The change that the answer spells; raises AnswerError."""
    if len(answer.set) + len(answer.remove) > MAX_PARTS:
        raise AnswerError(f"more than {MAX_PARTS} changes at once")
    flags: dict[str, FlagValue] = {}
    env: dict[str, str] = {}
    remove = [name.strip() for name in answer.remove]
    for item in answer.set:
        name, value = _split(item)
        if not name.startswith("-"):
            env[name] = value or ""
            continue
        typed = _typed(value, question.spelling.declared(name))
        if typed is False:
            remove.append(name)
        else:
            flags[name] = typed
    try:
        change = ConfigChange(
            set_flags=flags,
            set_env=env,
            remove_flags=tuple(n for n in remove if n.startswith("-")),
            remove_env=tuple(n for n in remove if not n.startswith("-")),
        )
    except ValidationError as error:
        raise AnswerError("; ".join(str(e["msg"]) for e in error.errors()[:3])) from error
    change = question.spelling.respell(change, question.base)
    return question.base.diff(question.base.apply(change))


def _split(item: str) -> tuple[str, str | None]:
    """`--flag=value`, `--flag value`, `--switch` or `NAME=value`."""
    text = item.strip()
    head = re.match(r"[^\s=]+", text)
    if head is None:
        raise AnswerError(f"{item[:40]!r} is not --flag=value or NAME=value")
    rest = text[head.end() :].strip()
    return head[0], (rest.removeprefix("=").strip().strip("'\"") if rest else None)


def _typed(value: str | None, knob: Knob | None) -> FlagValue:
    """The value in the flag's own type, as far as it can be told."""
    if value is None or value.lower() == "true":
        return True
    if value.lower() == "false":
        return False
    if knob is not None and knob.kind in ("str", "json"):
        return value
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        return number if abs(number) < 1e12 else value
    return value


def draft_of(
    answer: ModelAnswer, change: ConfigChange, question: Question, predicted: tuple[PredictedEffect, ...]
) -> Draft:
    """The draft of the answer; `predicted` stands in where the model gave no number for the ladder."""
    ladder = question.view.workload.ladder
    own = {p.concurrency: _ordered(p) for p in answer.predicted if p.concurrency in ladder}
    numbers = tuple(own[c] for c in sorted(own)) or predicted
    if not numbers:
        raise AnswerError(f"predicted: give a number for each concurrency of {', '.join(map(str, ladder))}")
    if not answer.statement.strip():
        raise AnswerError("statement: say what changes and what it should bring")
    return Draft(
        statement=clean(answer.statement, 300),
        reason=clean(answer.reason, 1000) or "no reason given",
        change=change,
        parent=question.base.id,
        predicted=numbers,
        refuted_by=clean(answer.refuted_by, 300) or "an effect that is not proven to be above zero",
        category=clean(answer.category, 40).lower() or "other",
        from_run=next((p.run for p in question.view.priors if _paid(p, change)), ""),
        source="model",
    )


def _paid(prior: PriorFinding, change: ConfigChange) -> bool:
    return prior.kind is VerdictKind.IMPROVED and prior.change == change


def _ordered(p: PredictedAt) -> PredictedEffect:
    low, effect, high = sorted(max(-1.0, min(x, MAX_EFFECT)) for x in (p.low, p.effect, p.high))
    return PredictedEffect(
        concurrency=p.concurrency, effect=round(effect, 4), low=round(low, 4), high=round(high, 4)
    )


def clean(text: str, limit: int) -> str:
    """One line of printable text: no control characters, no terminal codes, no markers of data."""
    plain = _CONTROL.sub(" ", text).replace("<data>", "").replace("</data>", "")
    return " ".join(plain.split())[:limit]
