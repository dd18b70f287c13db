"""What each page shows of a run, as plain data for the templates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from moeagent.agent.serve.search import Wanted, matching
from moeagent.agent.serve.seen import Seen
from moeagent.agent.show.curves import Curve
from moeagent.agent.show.html.answer import answer
from moeagent.agent.show.html.measured import raw_table
from moeagent.agent.show.html.table import Cell, Row, Table, table
from moeagent.agent.show.html.tried import TONES, Failure, Tried, failures, tried, verdict_cell
from moeagent.agent.show.text import change_text, percent, rate, verdict_effect_text
from moeagent.agent.show.visible import short
from moeagent.memory.errors import TapeError
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import ConfigChange, Hypothesis, Launch, Rung, VerdictKind
from moeagent.memory.records.approval import Approval
from moeagent.memory.review import Review, read_reviews
from moeagent.memory.run_view import RunView

SHOWN = 200
"""Rows of a list; the page says how many more there are."""
RECENT = 8
"""Launches and hypotheses on the page of a run."""
FINDING_FIELDS = ("text", "gpu", "engine", "model", "verdict", "flag")
Content = dict[str, Any]


def address(*parts: str) -> str:
    """A path on this server; names of others become part of it as they are."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def drawn(found: Sequence[Curve]) -> list[Curve]:
    """The curves of the picture: baseline, best and the last few others; the report draws them all."""
    others = [c for c in found if c.role == "candidate" and c.points][-RECENT:]
    return [c for c in found if c.points and (c.role != "candidate" or c in others)]


def overview(seen: Seen, found: tuple[Curve, ...]) -> Content:
    """How a run stands: the answer so far, the last launches and hypotheses."""
    view = seen.view
    if view is None:
        return {"answer": None, "launches": None, "hypotheses": None}
    latest = view.ledger.hypotheses[-RECENT:][::-1]
    return {
        "answer": answer(view, found),
        "launches": launches_table(view, view.ledger.launches[-RECENT:][::-1]),
        "hypotheses": hypotheses_table(view, latest, "The last hypotheses, newest first"),
    }


def log(seen: Seen, wanted: Wanted) -> Content:
    """The hypotheses that match, newest first."""
    view = seen.view
    found = matching(view, wanted)[::-1] if view else []
    count = len(view.ledger.hypotheses) if view else 0
    caption = "Hypotheses, newest first"
    return {
        "wanted": wanted,
        "verdicts": ("open", *VerdictKind),
        "found": len(found),
        "total": count,
        "left_out": max(0, len(found) - SHOWN),
        "hypotheses": hypotheses_table(view, found[:SHOWN], caption) if view else None,
        "rejections": view.ledger.rejections if view and wanted == Wanted() else (),
        "notes": view.ledger.notes if view and wanted == Wanted() else (),
    }


def hypotheses_table(view: RunView, hypotheses: Sequence[Hypothesis], caption: str) -> Table:
    """What, verdict and why: a row each, leading to the hypothesis."""
    rows: list[Row] = []
    for hypothesis in hypotheses:
        verdict = view.ledger.verdict(hypothesis.id)
        rows.append(
            [
                Cell(hypothesis.id, link=address("runs", view.run, "hypotheses", hypothesis.id)),
                verdict_cell(verdict),
                short(f"{hypothesis.statement}\n{change_text(hypothesis.change)}"),
                verdict_effect_text(verdict),
                short(verdict.reason) if verdict else "",
            ]
        )
    return table(caption, ("id", "verdict", "what and change", "#measured", "why"), rows)


def launches_table(view: RunView, launches: Sequence[Launch]) -> Table:
    """Output tok/s at each concurrency of each launch, leading to its log."""
    rows: list[Row] = []
    for launch in launches:
        at = {r.concurrency: r for r in launch.rungs}
        logged = address("runs", view.run, "launches", launch.id, "log") if launch.log else ""
        whose = address("runs", view.run, "hypotheses", launch.hypothesis) if launch.hypothesis else ""
        rows.append(
            [
                Cell(launch.id, link=logged),
                Cell(launch.hypothesis or "baseline", link=whose),
                *(_figure(at.get(c)) for c in view.ladder),
                _outcome(launch),
            ]
        )
    head = ("launch", "for", *(f"#at {c}" for c in view.ladder), "outcome")
    return table("The last launches, newest first: output tok/s", head, rows)


def _figure(rung: Rung | None) -> Cell:
    if rung is None:
        return Cell("")
    if rung.usable:
        return Cell(rate(rung.output_tok_s))
    return Cell("invalid", "unsure") if rung.throughput_invalid else Cell(f"{rung.failed} failed", "bad")


def _outcome(launch: Launch) -> Cell:
    if launch.diagnosis is None:
        return Cell(launch.outcome.value)
    boundary = launch.boundary
    died = f", good at {boundary.last_good or '-'}, failed at {boundary.first_failed}" if boundary else ""
    return Cell(f"{launch.outcome.value}: {launch.diagnosis.failure_class}{died}", "bad")


@dataclass(frozen=True)
class Whole:
    """One hypothesis with everything that belongs to it."""

    tried: Tried
    failures: tuple[Failure, ...]
    rungs: Table
    approvals: tuple[Approval, ...]
    reviews: tuple[Review, ...]
    review_problem: str
    before: str
    after: str
    """Ids of its neighbours; empty at the ends."""


def whole(seen: Seen, view: RunView, hypothesis_id: str) -> Whole | None:
    """One hypothesis; None where the run has none of this id."""
    ids = [h.id for h in view.ledger.hypotheses]
    if hypothesis_id not in ids:
        return None
    place = ids.index(hypothesis_id)
    alone = view.with_ledger(_only(view.ledger, hypothesis_id))
    reviews, problem = _reviews(seen)
    names = {hypothesis_id, *(launch.id for launch in alone.ledger.launches)}
    found = [failure for _, group in failures(alone, seen.folder) for failure in group]
    return Whole(
        tried=tried(alone)[0],
        failures=tuple(sorted(found, key=lambda f: ids_of_launches(alone).index(f.launch.id))),
        rungs=raw_table(alone.ledger.launches),
        approvals=tuple(a for a in view.ledger.approvals if a.hypothesis == hypothesis_id),
        reviews=tuple(r for r in reviews if r.about in names),
        review_problem=problem,
        before=ids[place - 1] if place else "",
        after=ids[place + 1] if place + 1 < len(ids) else "",
    )


def ids_of_launches(view: RunView) -> list[str]:
    """In the order of the run."""
    return [launch.id for launch in view.ledger.launches]


def _only(ledger: Ledger, hypothesis_id: str) -> Ledger:
    """The decisions about one hypothesis."""
    alone = Ledger()
    itself = [h for h in ledger.hypotheses if h.id == hypothesis_id]
    verdicts = [v for v in ledger.verdicts if v.hypothesis == hypothesis_id]
    launches, pivots = ledger.launches_for(hypothesis_id), ledger.pivots_for(hypothesis_id)
    for record in (*itself, *launches, *pivots, *verdicts):
        alone.add(record)
    return alone


def findings_table(rows: Sequence[Content], here: set[str]) -> Table:
    """What was tried where, and how it ended; a run whose folder is here can be opened."""
    return table(
        "What all runs learnt", ("id", "run", "verdict", "what and change", "#measured", "where", "why"),
        [_finding(row, row["run"] in here) for row in rows],
    )  # fmt: skip


def _finding(row: Content, here: bool) -> Row:
    kind = VerdictKind(row["verdict"]) if row["verdict"] else None
    badge = Cell(kind.value, TONES[kind]) if kind else Cell("open", "unsure")
    measured = (
        f"{percent(row['gain'])} [{percent(row['low'])}, {percent(row['high'])}]" if row["gain"] else "-"
    )
    review = f"\n{row['review']} by a reviewer {row['review_reason']}".rstrip() if row["review"] else ""
    engine = f"{row['engine']} {row['engine_version'] or ''}".strip()
    where = f"{row['gpu_count']} x {row['gpu']}\n{engine}, {row['model']}"
    change = change_text(ConfigChange.model_validate_json(row["change"]))
    return [
        Cell(row["id"], link=address("runs", row["run"], "hypotheses", row["id"]) if here else ""),
        Cell(row["run"], link=address("runs", row["run"]) if here else ""),
        badge,
        short(f"{row['statement']}\n{change}"),
        measured,
        f"{where}\nsimulated" if row["simulated"] else where,
        short(f"{row['verdict_reason'] or ''}{review}"),
    ]


def _reviews(seen: Seen) -> tuple[tuple[Review, ...], str]:
    try:
        return read_reviews(seen.folder), ""
    except TapeError as error:
        return (), str(error)
