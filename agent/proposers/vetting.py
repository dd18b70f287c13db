"""Why an idea cannot be launched: checked against the engine's own flags, the user's space and what is known.

Ideas come from a language model, so their names and values are hostile until they are checked here.
"""

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches

from moeagent.agent.proposers.history import Past
from moeagent.agent.proposers.question import Question
from moeagent.memory.records import ConfigChange, FlagValue, Knob

_PLAIN = re.compile(r"[A-Za-z0-9_.,:+-]{1,64}")
_MAX_JSON = 500
_LOADED = re.compile(
    r"--?(.*-)?(model|tokenizer|revision|template|path|paths|dir|dirs|file|files|folder|repo|url|urls|uri|"
    r"addr|address|endpoint|plugin|plugins)"
)
"""Flags that say what is loaded, from where, or where to write: a bare word names a file or a repository."""


def problems_of(change: ConfigChange, question: Question) -> list[str]:
    """Everything that speaks against the change of the question's base; empty when nothing does."""
    if change.is_empty():
        return ["the idea changes nothing"]
    found = unsafe(change, question)
    if change.install is not None:
        found.append("the install cannot be changed by a proposal")
    for objection in (question.view.space.objection(change), question.avoided(change)):
        if objection is not None:
            found.append(objection)
    return found or _history_problems(change, question)


def unsafe(change: ConfigChange, question: Question) -> list[str]:
    """What may not come from a model: unknown names, values that are no plain words, files."""
    return [*_flag_problems(change, question), *_variable_problems(change, question)]


def odd_values(change: ConfigChange, question: Question) -> list[str]:
    """Values that are no plain words, in names that the data knows: what a log says may not go further."""
    flags = ((f, _value_problem(v, question.spelling.declared(f))) for f, v in change.set_flags.items())
    words = ((n, None if _PLAIN.fullmatch(v) else "no plain word") for n, v in change.set_env.items())
    return [f"{name}: {problem}" for name, problem in (*flags, *words) if problem]


def _flag_problems(change: ConfigChange, question: Question) -> Iterator[str]:
    spelling = question.spelling
    names = [k.name for k in question.view.engine.knobs] or sorted(question.book.flags())
    for flag in (*change.set_flags, *change.remove_flags):
        if spelling.find(flag, question.base.flags) or question.declares(flag):
            continue
        near = get_close_matches(flag, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield f"{flag} is not a flag of this {question.base.engine}{hint}"
    for flag, value in change.set_flags.items():
        knob = spelling.declared(flag)
        problem = _value_problem(value, knob) or _loaded_problem(knob.name if knob else flag, value, knob)
        if problem:
            yield f"{flag}: {problem}"


def _value_problem(value: FlagValue, knob: Knob | None) -> str | None:
    if knob is not None and knob.choices is not None and not isinstance(value, bool):
        return None if str(value) in knob.choices else f"{value} is not one of {', '.join(knob.choices)}"
    if knob is not None and knob.kind in ("int", "float") and (isinstance(value, bool | str)):
        return f"{value!r} is not a number"
    if not isinstance(value, str):
        return None
    if knob is not None and knob.kind == "json":
        return _json_problem(value)
    return None if _PLAIN.fullmatch(value) else "the value is no plain word; paths are the user's to choose"


def _loaded_problem(flag: str, value: FlagValue, knob: Knob | None) -> str | None:
    if not isinstance(value, str) or (knob is not None and (knob.choices is not None or knob.kind == "json")):
        return None
    named = _LOADED.fullmatch(flag.replace("_", "-"))
    return "what is loaded, and from where, is the user's to choose" if named else None


def _json_problem(value: str) -> str | None:
    try:
        json.loads(value)
    except ValueError:
        return "the value is not JSON"
    harmless = len(value) <= _MAX_JSON and "/" not in value and "\\" not in value
    return None if harmless else "the value is too long or holds a path; paths are the user's to choose"


def _variable_problems(change: ConfigChange, question: Question) -> Iterator[str]:
    allowed = question.book.variables() | {k.name for k in question.view.engine.knobs}
    for name, value in change.set_env.items():
        if name not in allowed:
            yield f"{name} is not an environment variable that a proposal may set"
        elif not _PLAIN.fullmatch(value):
            yield f"{name}: the value is no plain word; paths are the user's to choose"


def _history_problems(change: ConfigChange, question: Question) -> list[str]:
    past: Past = question.past
    child = question.base.apply(change)
    if question.spelling.effective_key(child) in past.tried:
        return ["a server of this configuration was measured or tried already"]
    reason = past.refusal(change)
    return [reason] if reason else []
