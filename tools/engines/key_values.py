"""Reads Python-like argument lists as engines print them: `Name(a=1, b='x')`, `{'a': 1}`, `a=1, b=<Obj>`.

The values are data of a foreign process: they are taken apart as text and never evaluated as code.
"""

import ast
from collections.abc import Iterator
from typing import Any

_OPEN, _CLOSE, _QUOTES = "([{", ")]}", "'\""


def bracketed(text: str, start: int) -> str:
    """The inside of the bracket that opens at `start`; to the end of the text where it never closes."""
    depth = 0
    for index, char in _outside_quotes(text, start):
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            return text[start + 1 : index]
    return text[start + 1 :]


def key_values(inside: str) -> dict[str, Any]:
    """The key=value or 'key': value pairs of one level; a value that is no plain literal stays text."""
    pairs = (_pair(part) for part in split_top_level(inside))
    return {key: value for key, value in pairs if key}


def split_top_level(text: str) -> list[str]:
    """The parts between commas that are inside no bracket and no quotes."""
    parts, depth, begin = [], 0, 0
    for index, char in _outside_quotes(text, 0):
        depth += (char in _OPEN) - (char in _CLOSE)
        if char == "," and depth == 0:
            parts.append(text[begin:index])
            begin = index + 1
    return [part.strip() for part in (*parts, text[begin:]) if part.strip()]


def literal(text: str) -> Any:
    """A Python literal, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _pair(part: str) -> tuple[str, Any]:
    if part[:1] in _QUOTES:
        end = part.find(part[0], 1)
        key, rest = part[1:end], part[end + 1 :].lstrip()
        return (key, literal(rest[1:].strip())) if rest.startswith(":") else ("", None)
    key, equals, value = part.partition("=")
    return (key.strip(), literal(value.strip())) if equals and key.strip().isidentifier() else ("", None)


def _outside_quotes(text: str, start: int) -> Iterator[tuple[int, str]]:
    quote, skip = "", False
    for index in range(start, len(text)):
        char = text[index]
        if skip:
            skip = False
        elif quote:
            skip = char == "\\"
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        else:
            yield index, char
