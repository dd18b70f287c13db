"""The read-only questions that a language model may ask before it proposes."""

from collections.abc import Callable, Mapping

from moeagent.agent.proposers.answer import AnswerError, ModelAnswer, change_of
from moeagent.agent.proposers.protocol import Predictor
from moeagent.agent.proposers.question import Question
from moeagent.memory.records import Knob

LookUp = Callable[[str], str]
"""A query in, a short text out. Those that ask the world are given by the loop, which records them."""
MAX_RESULT = 2000
"""Characters of a result that the model sees."""
_MOST_FLAGS = 12


def look_ups_of(
    question: Question, predictor: Predictor | None, given: Mapping[str, LookUp]
) -> dict[str, LookUp]:
    """Every look-up by name: flag_help and predict are answered from the view, the others are given."""
    own: dict[str, LookUp] = {"flag_help": lambda query: flag_help(query, question.view.engine.knobs)}
    if predictor is not None:
        own["predict"] = lambda query: _predict(query, question, predictor)
    return {**own, **given}


def flag_help(query: str, knobs: tuple[Knob, ...]) -> str:
    """What the engine says about the flags whose name or help contains the query's words."""
    words = query.lower().replace("_", "-").split()
    texts = {k: f"{k.name} {' '.join(k.aliases)} {k.help}".lower() for k in knobs}
    found = [k for k, text in texts.items() if words and all(w in text for w in words)][:_MOST_FLAGS]
    return "\n".join(_entry(k) for k in found) or "no flag of this engine matches"


def _entry(knob: Knob) -> str:
    parts = [knob.name, f"({knob.kind}, default {knob.default}, {knob.status})"]
    if knob.choices:
        parts.append(f"one of {', '.join(knob.choices)}")
    return " ".join([*parts, knob.help])


def _predict(query: str, question: Question, predictor: Predictor) -> str:
    """The predictor's word on a change spelled as in a proposal: --flag=value --switch NAME=value."""
    try:
        change = change_of(ModelAnswer(set=query.split()), question)
    except AnswerError as error:
        return f"not a change: {error}"
    child = question.base.apply(change)
    effects = predictor.predict_effects(question.base, child)
    risk, why = predictor.risk(child)
    lines = [f"concurrency {e.concurrency}: {e.effect:+.1%} ({e.low:+.1%} to {e.high:+.1%})" for e in effects]
    return "\n".join([*lines, f"risk of a crash {risk:.0%} {why}".strip()])
