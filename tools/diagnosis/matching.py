"""Which signatures a line matches, all patterns in one pass, and the numbers in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import re2

from moeagent.tools.diagnosis.catalogue import Catalogue, Signature, compiled
from moeagent.tools.diagnosis.lines import Line

_MAX_MEMORY = 16 << 20
"""Bytes for the automaton of the pattern set."""
_UNITS = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
_NUMBER = re.compile(r"(?P<value>[-+]?\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]?)i?B?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that a signature knows."""

    line: Line
    signature: Signature
    groups: dict[str, str] = field(default_factory=dict)


class Matcher:
    """All signatures of a catalogue as one RE2 set."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.signatures: Sequence[Signature] = catalogue.signatures
        self._set = pattern_set(tuple(signature.pattern for signature in self.signatures))

    def match(self, line: Line) -> list[Hit]:
        """The hits on one line, in the catalogue's order; one that hides the line stands alone."""
        if not line.body.strip():
            return []
        hits = [Hit(line, self.signatures[index]) for index in sorted(self._set.Match(line.body) or ())]
        hiding = [hit for hit in hits if hit.signature.hides_line]
        return hiding[:1] or hits


@lru_cache(maxsize=8)
def pattern_set(patterns: tuple[str, ...]) -> "re2.Set":
    """One automaton over many patterns, unanchored."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    patterns_set = re2.Set.SearchSet(options)
    for pattern in patterns:
        patterns_set.Add(pattern)
    patterns_set.Compile()
    return patterns_set


def extract(signature: Signature, line: Line, continued: Sequence[str]) -> dict[str, str]:
    """Named groups of the signature's patterns on the line and on the lines that continue its message."""
    found: dict[str, str] = {}
    for pattern in (signature.pattern, *signature.extract):
        for text in (line.body, *continued):
            match = compiled(pattern).search(text)
            if match is not None:
                for name, value in match.groupdict().items():
                    if value is not None:
                        found.setdefault(name, value)
    return found


def number(text: str) -> float | None:
    """`904.00 MiB` as bytes, `0.92` as it is; None when the text holds no number."""
    match = _NUMBER.search(text)
    return float(match["value"]) * _UNITS[match["unit"].upper()] if match else None
