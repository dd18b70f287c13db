"""Writing runs into the findings store, and asking it what is already known."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from moeagent.memory.findings.alike import alike_of, rung_text
from moeagent.memory.findings.closeness import closeness
from moeagent.memory.findings.schema import open_store, write_transaction
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import (
    ConfigChange,
    Diagnosis,
    Hypothesis,
    Launch,
    Record,
    Rung,
    Scope,
    Verdict,
    VerdictKind,
    Workload,
    canonical_json,
)
from moeagent.memory.review import Review

SETTLED = tuple(k.value for k in VerdictKind if k not in (VerdictKind.INCONCLUSIVE, VerdictKind.INVALID))


CHILDREN = ("hypotheses", "launches", "measurements", "diagnoses")
REJECTED = """select 1 from reviews v where v.run = h.run and v.judgement = 'rejected' and (
    v.about = h.id or (h.verdict = 'blocked' and v.about in (
        select l.id from launches l where l.run = h.run and l.hypothesis = h.id)))"""
"""The finding itself was rejected, or the diagnosis of a launch that a blocked one rests on."""


class Finding(Record):
    """One settled hypothesis of an earlier run."""

    run: str
    scope: Scope
    workload: str
    goal: str
    change: ConfigChange
    kind: VerdictKind
    reason: str
    effect: float | None
    exact: bool
    """Same hardware, engine version, model, workload and goal; otherwise it is a hint only."""
    closeness: str = ""
    """What is the same and what differs, in words."""
    trust: float | None = None
    """0 to 1: how far it is believed in the scope that asked."""


class FindingsStore:
    """SQLite across runs; one instance per thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: Database = open_store(path)

    def index(self, run: str, header: dict[str, Any], ledger: Ledger) -> None:
        """Write what the run has concluded so far; writing it again changes nothing."""
        if ledger.facts is None:
            return
        with write_transaction(self._db):
            self._db.table("runs").upsert(_run_row(run, header, ledger), pk="id")
            for table, rows, pk in _rows(run, ledger):
                self._db.table(table).upsert_all(rows, pk=pk)

    def judge(self, run: str, judgements: Iterable[Review]) -> None:
        """Write down what a reviewer thinks of a run's hypotheses and launches."""
        rows = [
            {"run": run, "about": r.about, "judgement": r.judgement, "reason": r.text, "at": r.at}
            for r in judgements
        ]
        with write_transaction(self._db):
            self._db.table("reviews").upsert_all(rows, pk=("run", "about"))

    def forget(self, run: str) -> None:
        """Take a run out of the index."""
        with write_transaction(self._db):
            for table in (*CHILDREN, "reviews"):
                self._db.table(table).delete_where("run = ?", [run])
            self._db.table("runs").delete_where("id = ?", [run])

    def runs(self) -> list[str]:
        """Ids of all indexed runs."""
        return [row["id"] for row in self._db.query("select id from runs order by id")]

    def query(self, sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        """Rows of a read-only question with named values."""
        return list(self._db.query(sql, values))

    def known(self, scope: Scope, workload: str, goal: str, *, besides: str) -> list[Finding]:
        """Settled hypotheses of other runs on the same engine and on the same GPU or model.

        The nearest scope comes first, then the newest run.

        Failures are included; a finding of the simulated machine is never known to a real one, and what a
        reviewer rejected is not known at all.
        """
        rows = self._db.query(
            f"""select h.run, h.change, h.verdict, h.verdict_reason, h.effect, r.* from hypotheses h
            join runs r on r.id = h.run
            where r.engine = :engine and r.simulated = :simulated and (r.gpu = :gpu or r.model = :model)
              and h.run != :besides and h.verdict in ({",".join(repr(k) for k in SETTLED)})
              and not exists ({REJECTED})
            order by r.created_at desc, h.id""",  # noqa: S608 - constants of this module
            {
                "engine": scope.engine,
                "simulated": int(scope.simulated),
                "gpu": scope.gpu,
                "model": scope.model,
                "besides": besides,
            },
        )
        found = [_finding(row, scope, workload, goal) for row in rows]
        return sorted(found, key=lambda finding: -(finding.trust or 0.0))

    def search(self, text: str, *, limit: int = 50) -> list[dict[str, Any]]:
        """Full-text search over statements, reasons, knobs and verdicts of all runs."""
        quoted = self._db.quote_fts(text)
        found = self._db.table("hypotheses").search(quoted, limit=limit)
        runs = {row["id"]: row for row in self._db.table("runs").rows}
        return [
            {**row, "change": json.loads(row["change"]), "scope": _scope_of(runs[row["run"]]).model_dump()}
            for row in found
        ]

    def close(self) -> None:
        """Release the file."""
        self._db.close()


def workload_text(workload: Workload) -> str:
    """How a workload is compared between runs."""
    ladder = ",".join(str(c) for c in workload.ladder)
    body = f" with {canonical_json(workload.body)}" if workload.body else ""
    return f"{workload.dataset} {workload.input_len}/{workload.output_len} at {ladder}{body}"


def _run_row(run: str, header: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    facts = ledger.facts
    assert facts is not None
    settings = header["settings"]
    conclusion = ledger.conclusion
    return {
        "id": run,
        "created_at": header["created_at"],
        "goal": settings["goal"]["name"],
        "workload": workload_text(Workload.model_validate(settings["workload"])),
        "gpu": facts.scope.gpu,
        "gpu_count": facts.scope.gpu_count,
        "engine": facts.scope.engine,
        "engine_version": facts.scope.engine_version,
        "model": facts.scope.model,
        "simulated": int(facts.scope.simulated),
        "alike": alike_of(header, ledger),
        "status": conclusion.status if conclusion else "running",
        "best": canonical_json(conclusion.best.model_dump(mode="json"))
        if conclusion and conclusion.best
        else None,
    }


def _rows(run: str, ledger: Ledger) -> list[tuple[str, list[dict[str, Any]], tuple[str, ...]]]:
    return [
        (
            "hypotheses",
            [_hypothesis_row(run, h, ledger.verdict(h.id)) for h in ledger.hypotheses],
            ("run", "id"),
        ),
        ("launches", [_launch_row(run, launch) for launch in ledger.launches], ("run", "id")),
        (
            "measurements",
            [_rung_row(run, launch.id, rung) for launch in ledger.launches for rung in launch.rungs],
            ("run", "launch", "concurrency"),
        ),
        (
            "diagnoses",
            [
                _diagnosis_row(run, launch.id, launch.diagnosis)
                for launch in ledger.launches
                if launch.diagnosis
            ],
            ("run", "launch"),
        ),
    ]


def _hypothesis_row(run: str, hypothesis: Hypothesis, verdict: Verdict | None) -> dict[str, Any]:
    effect = verdict.goal_effect if verdict else None
    return {
        "run": run,
        "id": hypothesis.id,
        "statement": hypothesis.statement,
        "reason": hypothesis.reason,
        "category": hypothesis.category,
        "source": hypothesis.source,
        "knobs": " ".join(hypothesis.change.knobs()),
        "change": canonical_json(hypothesis.change.model_dump(mode="json")),
        "verdict": verdict.kind.value if verdict else None,
        "verdict_reason": verdict.reason if verdict else None,
        "effect": effect.effect if effect else None,
        "low": effect.low if effect else None,
        "high": effect.high if effect else None,
    }


def _launch_row(run: str, launch: Launch) -> dict[str, Any]:
    return {
        "run": run,
        "id": launch.id,
        "hypothesis": launch.hypothesis,
        "config": canonical_json(launch.config.model_dump(mode="json")),
        "outcome": launch.outcome.value,
        "ready_after_s": launch.ready_after_s,
    }


def _rung_row(run: str, launch: str, rung: Rung) -> dict[str, Any]:
    ttft, tpot = rung.ttft_ms, rung.tpot_ms
    return {
        "run": run,
        "launch": launch,
        "concurrency": rung.concurrency,
        "completed": rung.completed,
        "failed": rung.failed,
        "output_tok_s": rung.output_tok_s,
        "ttft_p50_ms": ttft.p50 if ttft else None,
        "ttft_p99_ms": ttft.p99 if ttft else None,
        "tpot_p50_ms": tpot.p50 if tpot else None,
        "tpot_p99_ms": tpot.p99 if tpot else None,
        "invalid": rung.invalid,
        "energy_j": rung.energy_j,
        "power_w": rung.gpu.power_w if rung.gpu else None,
        "rung": rung_text(rung),
    }


def _diagnosis_row(run: str, launch: str, diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "run": run,
        "launch": launch,
        "class": diagnosis.failure_class,
        "confidence": diagnosis.confidence,
        "stage": diagnosis.stage,
        "root_line": diagnosis.root_line,
        "line_no": diagnosis.line_no,
        "explanation": diagnosis.explanation,
    }


def _scope_of(row: dict[str, Any]) -> Scope:
    names = ("gpu", "gpu_count", "engine", "engine_version", "model")
    return Scope(**{name: row[name] for name in names}, simulated=bool(row["simulated"]))


def _finding(row: dict[str, Any], scope: Scope, workload: str, goal: str) -> Finding:
    theirs = _scope_of(row)
    same_load = (row["workload"], row["goal"]) == (workload, goal)
    near = closeness(theirs, scope, same_load=same_load)
    return Finding(
        run=row["run"],
        scope=theirs,
        workload=row["workload"],
        goal=row["goal"],
        change=ConfigChange.model_validate_json(row["change"]),
        kind=VerdictKind(row["verdict"]),
        reason=row["verdict_reason"],
        effect=row["effect"],
        exact=theirs == scope and same_load,
        closeness=near.words,
        trust=near.trust,
    )
