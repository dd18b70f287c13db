"""Launches of one configuration in earlier runs on the same machine: how far they spread is its noise."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from moeagent.memory.findings.alike import Alike
from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.records import Launch, LaunchOutcome, Rung, ServerConfig, canonical_json

MOST_RUNS = 12
"""The newest runs that count: a machine of a year ago is another one."""

ROWS = """select l.run, l.id, l.config, l.outcome, m.rung, exists (select 1 from reviews v
        where v.run = l.run and v.about = l.id and v.judgement = 'rejected') as rejected from launches l
    join measurements m on m.run = l.run and m.launch = l.id
    where l.config = :config and m.rung is not null and l.run in (
        select id from runs where alike = :alike and id != :besides order by created_at desc limit :most)
    order by l.run, l.rowid, m.concurrency"""

Row = dict[str, Any]


def earlier_launches(store: FindingsStore, alike: Alike, besides: str) -> tuple[tuple[Launch, ...], ...]:
    """Launches of this baseline in other runs that are alike, run by run.

    What a reviewer rejected is left out, and a fork's copies of its parent's launches count once.
    """
    values = {
        "config": canonical_json(alike.config.model_dump(mode="json")),
        "alike": alike.key,
        "besides": besides,
        "most": MOST_RUNS,
    }
    launches: dict[tuple[str, str], list[Row]] = {}
    for row in store.query(ROWS, values):
        launches.setdefault((row["run"], row["id"]), []).append(row)
    runs: dict[str, list[Launch]] = {}
    for rows in _once(launches.values()):
        runs.setdefault(rows[0]["run"], []).append(_launch(rows))
    return tuple(tuple(found) for found in runs.values())


def _once(launches: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """No two launches measure the same to the last digit: those that do are one, copied."""
    by_figures: dict[tuple[str, ...], list[list[Row]]] = {}
    for rows in launches:
        by_figures.setdefault(tuple(row["rung"] for row in rows), []).append(rows)
    return (copies[0] for copies in by_figures.values() if not any(rows[0]["rejected"] for rows in copies))


def _launch(rows: list[Row]) -> Launch:
    return Launch(
        id=rows[0]["id"],
        hypothesis=None,
        config=ServerConfig.model_validate_json(rows[0]["config"]),
        command="",
        outcome=LaunchOutcome(rows[0]["outcome"]),
        rungs=tuple(Rung.model_validate(json.loads(row["rung"])) for row in rows),
    )
