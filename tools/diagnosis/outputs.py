"""Answers in a request log that are no language: one piece repeated to the end, or marks without a word."""

import re

from moeagent.tools.diagnosis.lines import Line
from moeagent.tools.diagnosis.log import Log

_ANSWER = re.compile(
    r"\b(?:text|content|generated_text|output_text|output|Generated text)['\"]?: ?"
    r"(?P<quote>['\"])(?P<text>.*?)(?P=quote)(?:[,}\]]|$)"
)
_REPEATED = re.compile(r"(?s)(?P<piece>.{1,8}?)(?P=piece){11,}")
_SHARE = 0.8
"""Share of an answer that the repetition must cover; lists and tables repeat less."""
_LEAST = 24
"""Characters below which an answer proves nothing."""
_SEARCHED = 4000
"""Characters of a line that are searched, which bounds the time spent on hostile text."""


def degenerate_answer(log: Log) -> Line | None:
    """The first logged answer that only repeats itself, when there is one."""
    for line in log.lines:
        if not any(word in line.text for word in ("text", "content", "output")):
            continue
        for match in _ANSWER.finditer(line.text[:_SEARCHED]):
            if is_degenerate(match["text"]) or _wordless(match["text"]):
                return line
    return None


def is_degenerate(text: str) -> bool:
    """Whether one piece of at most eight characters makes up most of the text."""
    if len(text) < _LEAST or not text.strip():
        return False
    match = _REPEATED.search(text[:512])
    return match is not None and match.end() - match.start() >= _SHARE * min(len(text), 512)


def _wordless(text: str) -> bool:
    """Whether an answer has characters and none of them is a letter or digit of any script."""
    plain = text.replace("\\n", "").strip()
    return bool(plain) and not any(char.isalnum() for char in plain)
