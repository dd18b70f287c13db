"""Requests from files: prompts, conversations, and traces with arrival times."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from moeagent.memory.errors import InputError
from moeagent.tools.load.spec import Prompt, vocabulary

LENGTH_KEYS = ("output_len", "output_length", "max_tokens")
TOKENS_PER_WORD = 1.33
"""English prose in the tokenizers of current models; used only for the length of a recorded reply."""


class Timed(NamedTuple):
    """A request of a trace: seconds after the trace's own zero, and what is sent."""

    at_s: float
    prompt: Prompt


def prompts_from_file(path: Path, *, output_len: int) -> tuple[Prompt, ...]:
    """One JSON object a line: `prompt` (text or token ids) and, optionally, `output_len`.

    InputError with the line number for the first bad line.
    """
    return tuple(prompt_of(entry, where, output_len) for where, entry in json_lines(path))


def trace_from_file(path: Path, *, output_len: int, words_per_token: float = 1.0) -> tuple[Timed, ...]:
    """A trace: `arrival_s` (seconds) or `timestamp` (milliseconds, as in the Mooncake traces) in each line.

    The line has a `prompt`, or an `input_length` in tokens for which random words are made.
    """
    timed = []
    for number, (where, entry) in enumerate(json_lines(path)):
        if "arrival_s" in entry:
            at_s = number_of(entry["arrival_s"], "arrival_s", where)
        elif "timestamp" in entry:
            at_s = number_of(entry["timestamp"], "timestamp", where) / 1000
        else:
            raise InputError(f"{where}: no arrival_s (seconds) and no timestamp (milliseconds)")
        if "prompt" not in entry and "input_length" in entry:
            words = max(1, round(number_of(entry["input_length"], "input_length", where) * words_per_token))
            entry = entry | {"prompt": random_text(words, f"{path.name}/{number}")}
        timed.append(Timed(at_s, prompt_of(entry, where, output_len)))
    return tuple(sorted(timed, key=lambda t: t.at_s))


def conversations_from_file(path: Path, *, output_len: int | None, seed: str) -> tuple[Prompt, ...]:
    """ShareGPT's format, shuffled by the seed: the first turn is sent, the second one's length is asked for.

    `output_len` overrides the recorded reply's length. InputError when there is nothing to send.
    """
    try:
        text = path.read_text(encoding="utf-8")
        entries = json.loads(text) if text.lstrip().startswith("[") else [e for _, e in json_lines(path)]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} line {error.lineno}: {error.msg}; the ShareGPT file is a JSON list"
        ) from error
    found = [p for p in (conversation(entry, output_len) for entry in entries) if p is not None]
    if not found:
        raise InputError(f"{path} holds no conversation of two turns: each entry needs `conversations`")
    random.Random(seed).shuffle(found)
    return tuple(found)


def conversation(entry: Any, output_len: int | None) -> Prompt | None:
    """The first turn as a prompt; None for an entry without two turns of text."""
    turns = entry.get("conversations") or entry.get("conversation") if isinstance(entry, dict) else None
    if not isinstance(turns, list) or len(turns) < 2:
        return None
    values = [t.get("value") or t.get("content") for t in turns[:2] if isinstance(t, dict)]
    texts = [v for v in values if isinstance(v, str) and v.strip()]
    if len(texts) < 2:
        return None
    return Prompt(prompt=texts[0], out=output_len or max(4, round(len(texts[1].split()) * TOKENS_PER_WORD)))


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """("FILE line N", object) of each line that is not blank; InputError for one that is no JSON object."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    empty = True
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        empty, where = False, f"{path} line {number}"
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{where}: {error.msg}; each line is one JSON object") from error
        if not isinstance(entry, dict):
            raise InputError(f"{where}: {type(entry).__name__} where an object was expected")
        yield where, entry
    if empty:
        raise InputError(f"{path} is empty: each line is one JSON object with a `prompt`")


def prompt_of(entry: dict[str, Any], where: str, output_len: int) -> Prompt:
    """The request in one line of a file."""
    prompt = entry.get("prompt")
    ids = isinstance(prompt, list) and prompt and all(type(i) is int and i >= 0 for i in prompt)
    if not ids and not (isinstance(prompt, str) and prompt):
        raise InputError(f"{where}: `prompt` must be a text or a list of token ids, not empty")
    out = next((entry[key] for key in LENGTH_KEYS if key in entry), output_len)
    if type(out) is not int or out < 1:
        raise InputError(f"{where}: output length {out!r} is not a positive whole number")
    return Prompt(prompt=prompt, out=out)


def number_of(value: Any, name: str, where: str) -> float:
    """A number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise InputError(f"{where}: {name} is {value!r}, not a number of at least 0")
    return float(value)


def random_text(words: int, seed: str) -> str:
    """That many random common words."""
    return " ".join(random.Random(seed).choices(vocabulary(), k=words))
