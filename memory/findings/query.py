"""Asking the findings store: full text, and filters over scope, verdict and flag."""

from typing import Any

from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.records import Record, VerdictKind

COLUMNS = """h.run, h.id, r.created_at, r.gpu, r.gpu_count, r.engine, r.engine_version, r.model, r.simulated,
    r.goal, r.workload, h.statement, h.reason, h.category, h.source, h.knobs, h.change, h.verdict,
    h.verdict_reason, h.effect, h.low, h.high,
    case when h.verdict = 'improved' then h.effect end as gain,
    v.judgement as review, v.reason as review_reason"""
NAMES = tuple(column.split(" as ")[-1].split(".")[-1].strip() for column in COLUMNS.split(","))
"""Of the columns of a finding, in their order."""
NEWEST_RUN_FIRST = "runs r cross join hypotheses h on h.run = r.id"
"""A cross join keeps SQLite to this order: it stops at the limit and does not sort every hypothesis."""
BEST_MATCH_FIRST = "hypotheses_fts f join hypotheses h on h.rowid = f.rowid join runs r on r.id = h.run"
REVIEWED = "left join reviews v on v.run = h.run and v.about = h.id"


class Filters(Record):
    """What is asked for; empty fields ask for everything. Texts match anywhere in the value, in any case."""

    text: str = ""
    """Words that must all stand in statement, reason, knobs or verdict."""
    gpu: str = ""
    engine: str = ""
    model: str = ""
    verdict: VerdictKind | None = None
    flag: str = ""
    """A flag or variable that the hypothesis touches, with or without its dashes."""
    limit: int = 50


def find(store: FindingsStore, filters: Filters) -> list[dict[str, Any]]:
    """Hypotheses that match, best match first, or newest first without text.

    `gain` is the effect where the verdict supports one, else null; `effect`, `low`, `high` are what was
    measured, whatever the verdict.
    """
    conditions, values = _conditions(filters)
    tables, order = NEWEST_RUN_FIRST, "r.created_at desc, h.rowid"
    if filters.text:
        tables, order = BEST_MATCH_FIRST, "f.rank"
        conditions.append("hypotheses_fts match :text")
    where = " and ".join(conditions) or "1"
    sql = f"""select {COLUMNS} from {tables} {REVIEWED}
        where {where} order by {order} limit :limit"""  # noqa: S608 - constants of this module
    return store.query(sql, {**values, "limit": filters.limit})


def _conditions(filters: Filters) -> tuple[list[str], dict[str, Any]]:
    """SQL with named values; no text of the user goes into the SQL."""
    conditions: list[str] = []
    values: dict[str, Any] = {"text": _quoted(filters.text)} if filters.text else {}
    for name in ("gpu", "engine", "model"):
        if wanted := getattr(filters, name):
            conditions.append(f"instr(lower(r.{name}), :{name}) > 0")
            values[name] = wanted.lower()
    if filters.verdict:
        conditions.append("h.verdict = :verdict")
        values["verdict"] = filters.verdict.value
    if filters.flag:
        conditions.append("instr(' ' || replace(h.knobs, '--', '') || ' ', :flag) > 0")
        values["flag"] = f" {filters.flag.lstrip('-')} "
    return conditions, values


def _quoted(text: str) -> str:
    """Every word as a phrase of its own: operators of the full-text language are plain words."""
    return " ".join('"' + word.replace('"', '""') + '"' for word in text.split())
