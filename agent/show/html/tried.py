"""Hypotheses and failures as the page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from moeagent.agent.show.html.table import Cell, Row, Table, Tone, table
from moeagent.agent.show.text import change_text, effect_text, percent, verdict_effect_text
from moeagent.agent.show.visible import MAX_CHARS, short, visible
from moeagent.memory.errors import TapeError
from moeagent.memory.records import (
    Diagnosis,
    Hypothesis,
    Launch,
    Pivot,
    PredictionScore,
    Verdict,
    VerdictKind,
)
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView

TONES: dict[VerdictKind, Tone] = {
    VerdictKind.IMPROVED: "good",
    VerdictKind.REGRESSED: "bad",
    VerdictKind.BLOCKED: "bad",
    VerdictKind.NEUTRAL: "quiet",
    VerdictKind.NO_OP: "quiet",
    VerdictKind.INVALID: "unsure",
    VerdictKind.INCONCLUSIVE: "unsure",
}
AROUND = 3
"""Log lines shown before and after the causing one."""
LINE_CHARS = 400


@dataclass(frozen=True)
class Tried:
    """One hypothesis whole."""

    hypothesis: Hypothesis
    badge: Cell
    effect: str
    verdict: Verdict | None
    change: str
    per_rung: Table | None
    launches: tuple[Launch, ...]
    pivots: tuple[Pivot, ...]


@dataclass(frozen=True)
class Failure:
    """One failed launch with what its log says."""

    launch: Launch
    diagnosis: Diagnosis
    excerpt: tuple[tuple[int, str], ...]
    """Line numbers and lines around the cause; empty when the log is not there."""


def tried(view: RunView) -> tuple[Tried, ...]:
    """Every hypothesis, in the order of the run."""
    return tuple(_tried(view, h) for h in view.ledger.hypotheses)


def verdict_cell(verdict: Verdict | None) -> Cell:
    """The verdict's word in its tone."""
    return Cell(verdict.kind.value, TONES[verdict.kind]) if verdict else Cell("open", "unsure")


def glance(found: Sequence[Tried]) -> Table:
    """A row per hypothesis."""
    rows: list[Row] = [
        [
            Cell(t.hypothesis.id, link=f"#{t.hypothesis.id}"),
            t.badge,
            short(t.hypothesis.statement),
            t.effect,
            short(t.verdict.reason) if t.verdict else "",
        ]
        for t in found
    ]
    return table("Every hypothesis and its verdict", ("", "verdict", "hypothesis", "#measured", "why"), rows)


def score_table(found: Sequence[tuple[str, PredictionScore]]) -> Table:
    """The figures of the prediction picture."""
    rows: list[Row] = [
        [
            Cell(name, link=f"#{name}"),
            str(s.concurrency),
            percent(s.predicted),
            percent(s.measured),
            Cell("yes" if s.inside else "no", "good" if s.inside else "bad"),
            Cell("yes" if s.sign_right else "no", "good" if s.sign_right else "bad"),
        ]
        for name, s in found
    ]
    head = ("hypothesis", "#concurrency", "#predicted", "#measured", "in range", "right sign")
    return table("Predicted and measured change of output tok/s", head, rows)


def failures(view: RunView, folder: RunFolder) -> list[tuple[str, tuple[Failure, ...]]]:
    """Failed launches by failure class, most frequent class first."""
    found = [
        Failure(launch, launch.diagnosis, _excerpt(folder, launch, launch.diagnosis))
        for launch in view.ledger.launches
        if launch.diagnosis
    ]
    found.sort(key=_class)
    classes = [(name, tuple(group)) for name, group in groupby(found, key=_class)]
    return sorted(classes, key=lambda pair: (-len(pair[1]), pair[0]))


def _class(failure: Failure) -> str:
    return failure.diagnosis.failure_class


def _tried(view: RunView, hypothesis: Hypothesis) -> Tried:
    verdict = view.ledger.verdict(hypothesis.id)
    return Tried(
        hypothesis=hypothesis,
        badge=verdict_cell(verdict),
        effect=verdict_effect_text(verdict),
        verdict=verdict,
        change=change_text(hypothesis.change),
        per_rung=_per_rung(hypothesis, verdict),
        launches=tuple(view.ledger.launches_for(hypothesis.id)),
        pivots=tuple(view.ledger.pivots_for(hypothesis.id)),
    )


def _per_rung(hypothesis: Hypothesis, verdict: Verdict | None) -> Table | None:
    measured = {e.concurrency: e for e in verdict.effects if e.concurrency} if verdict else {}
    predicted = {p.concurrency: p for p in hypothesis.predicted}
    rows = []
    for concurrency in sorted({*predicted, *measured}):
        guess = predicted.get(concurrency)
        told = f"{percent(guess.effect)} [{percent(guess.low)}, {percent(guess.high)}]" if guess else "-"
        rows.append([str(concurrency), told, effect_text(measured.get(concurrency))])
    caption = f"{hypothesis.id}: change of output tok/s by concurrency; the verdict weighs them together"
    return table(caption, ("#concurrency", "#predicted", "#measured"), rows) if rows else None


def _excerpt(folder: RunFolder, launch: Launch, diagnosis: Diagnosis) -> tuple[tuple[int, str], ...]:
    if launch.log is None or diagnosis.line_no is None:
        return ()
    try:
        lines = folder.text(launch.log).split("\n")
    except TapeError:
        return ()
    first = max(1, diagnosis.line_no - AROUND)
    around = lines[first - 1 : diagnosis.line_no + AROUND]
    limits = {diagnosis.line_no: MAX_CHARS}
    return tuple(
        (number, visible(line, limit=limits.get(number, LINE_CHARS)))
        for number, line in enumerate(around, start=first)
    )
