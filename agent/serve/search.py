"""Narrowing what the pages list: hypotheses of a run, lines of a server's log."""

from dataclasses import dataclass

from moeagent.agent.show.text import change_text
from moeagent.memory.records import Hypothesis
from moeagent.memory.run_view import RunView

AROUND = 200
"""Lines of a log shown before and after the one in question."""
MOST_HITS = 200
"""Matching lines that are listed."""


@dataclass(frozen=True)
class Wanted:
    """What the reader of a hypothesis log asked for; empty fields ask for everything."""

    words: str = ""
    verdict: str = ""
    """A verdict's name, or `open` for hypotheses without one."""
    flag: str = ""


@dataclass(frozen=True)
class LogWindow:
    """A part of a server's log."""

    total: int
    first: int
    """Number of the first line shown, 1-based."""
    lines: tuple[str, ...]
    hits: tuple[tuple[int, str], ...]
    """Lines that hold the searched text, with their numbers."""
    more_hits: int
    """Hits that are not listed."""

    @property
    def last(self) -> int:
        """Number of the last line shown."""
        return self.first + len(self.lines) - 1


def matching(view: RunView, wanted: Wanted) -> list[Hypothesis]:
    """Hypotheses that have the verdict, touch the flag and hold every word, in any case."""
    return [h for h in view.ledger.hypotheses if _matches(view, h, wanted)]


def _matches(view: RunView, hypothesis: Hypothesis, wanted: Wanted) -> bool:
    verdict = view.ledger.verdict(hypothesis.id)
    kind = verdict.kind.value if verdict else "open"
    names = {name.lstrip("-") for name in hypothesis.change.knobs()}
    if wanted.verdict not in ("", kind):
        return False
    if wanted.flag and not any(wanted.flag.lstrip("-").lower() in name.lower() for name in names):
        return False
    return not wanted.words or all(word in _text(view, hypothesis) for word in wanted.words.lower().split())


def _text(view: RunView, hypothesis: Hypothesis) -> str:
    verdict = view.ledger.verdict(hypothesis.id)
    launches = view.ledger.launches_for(hypothesis.id)
    parts = [
        hypothesis.id,
        hypothesis.statement,
        hypothesis.reason,
        change_text(hypothesis.change),
        hypothesis.category,
        f"{verdict.kind.value} {verdict.reason}" if verdict else "open",
        *(f"{x.id} {x.outcome.value}" for x in launches),
        *(f"{x.diagnosis.failure_class} {x.diagnosis.root_line}" for x in launches if x.diagnosis),
    ]
    return " ".join(parts).lower()


def window(text: str, around: int | None, find: str) -> LogWindow:
    """The lines around one (the end of the log without it), and the lines that hold `find` in any case."""
    lines = text.split("\n")
    middle = min(max(around or len(lines), 1), len(lines))
    first = max(1, middle - AROUND)
    hits = [(n, line) for n, line in enumerate(lines, start=1) if find and find.lower() in line.lower()]
    return LogWindow(
        total=len(lines),
        first=first,
        lines=tuple(lines[first - 1 : middle + AROUND]),
        hits=tuple(hits[:MOST_HITS]),
        more_hits=max(0, len(hits) - MOST_HITS),
    )
