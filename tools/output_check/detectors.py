"""Signs of a broken kernel in one answer, without knowing the right one."""

import math
from collections.abc import Callable

from moeagent.tools.output_check.sample import Answer

Detector = Callable[[Answer], bool]

LOOP_TIMES = 6
"""A unit repeated so often at the end of an answer counts as a loop."""
LOOP_CHARACTERS = 24
"""A loop shorter than this may be a list of dots or zeros."""


def is_empty(answer: Answer) -> bool:
    """No text at all, where an answer was asked for."""
    return not answer.text.strip() and not answer.token_ids


def is_unreadable(answer: Answer) -> bool:
    """More than a tenth of the characters are replacement or control characters."""
    bad = sum(c == "\ufffd" or (c < " " and c not in "\n\r\t") for c in answer.text)
    return bad > len(answer.text) / 10


def is_looping(answer: Answer) -> bool:
    """The answer ends in one unit of text, or one token id, again and again."""
    return _loops(answer.text, LOOP_CHARACTERS) or bool(
        answer.token_ids and _loops(answer.token_ids, 2 * LOOP_TIMES)
    )


def _loops(items: "str | tuple[int, ...]", least: int) -> bool:
    for unit in range(1, len(items) // LOOP_TIMES + 1):
        span = max(unit * LOOP_TIMES, least)
        tail = items[len(items) - span :]
        if len(items) >= span and all(tail[i] == tail[i - unit] for i in range(unit, len(tail))):
            return True
    return False


def has_no_number(answer: Answer) -> bool:
    """A log-probability that is missing, infinite or not a number."""
    return any(x is None or not math.isfinite(x) for x in answer.logprobs or ())


def out_of_range(answer: Answer, vocabulary: int | None) -> bool:
    """A token id below zero or beyond the vocabulary."""
    ids = answer.token_ids or ()
    return any(i < 0 or (vocabulary is not None and i >= vocabulary) for i in ids)
