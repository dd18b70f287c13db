"""Tables of runs/findings.db. It is an index: `rebuild` makes it again from the tapes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from moeagent.memory.errors import InputError

BUSY_TIMEOUT_S = 30.0

migrations = Migrations("moeagent")


@migrations()
def first_tables(db: Database) -> None:
    """Runs with their scope, hypotheses with verdicts, launches, measurements, diagnoses."""
    db.table("runs").create(
        {
            "id": str,
            "created_at": str,
            "goal": str,
            "workload": str,
            "gpu": str,
            "gpu_count": int,
            "engine": str,
            "engine_version": str,
            "model": str,
            "simulated": int,
            "status": str,
            "best": str,
        },
        pk="id",
        strict=True,
    )
    db.table("hypotheses").create(
        {
            "run": str,
            "id": str,
            "statement": str,
            "reason": str,
            "category": str,
            "source": str,
            "knobs": str,
            "change": str,
            "verdict": str,
            "verdict_reason": str,
            "effect": float,
            "low": float,
            "high": float,
        },
        pk=("run", "id"),
        foreign_keys=[("run", "runs", "id")],
        strict=True,
    )
    db.table("launches").create(
        {"run": str, "id": str, "hypothesis": str, "config": str, "outcome": str, "ready_after_s": float},
        pk=("run", "id"),
        foreign_keys=[("run", "runs", "id")],
        strict=True,
    )
    db.table("measurements").create(
        {
            "run": str,
            "launch": str,
            "concurrency": int,
            "completed": int,
            "failed": int,
            "output_tok_s": float,
            "ttft_p50_ms": float,
            "ttft_p99_ms": float,
            "tpot_p50_ms": float,
            "tpot_p99_ms": float,
            "invalid": str,
        },
        pk=("run", "launch", "concurrency"),
        foreign_keys=[("run", "runs", "id")],
        strict=True,
    )
    db.table("diagnoses").create(
        {
            "run": str,
            "launch": str,
            "class": str,
            "confidence": float,
            "stage": str,
            "root_line": str,
            "line_no": int,
            "explanation": str,
        },
        pk=("run", "launch"),
        foreign_keys=[("run", "runs", "id")],
        strict=True,
    )
    db.table("hypotheses").enable_fts(
        ["statement", "reason", "knobs", "verdict", "verdict_reason"], create_triggers=True
    )
    db.table("runs").create_index(["engine", "gpu", "simulated"])


@migrations()
def reviews(db: Database) -> None:
    """The last judgement of a reviewer on a hypothesis or launch."""
    db.table("reviews").create(
        {"run": str, "about": str, "judgement": str, "reason": str, "at": str},
        pk=("run", "about"),
        strict=True,
    )


@migrations()
def newest_first(db: Database) -> None:
    """Findings are listed by the time of their run."""
    db.table("runs").create_index(["created_at"])


@migrations()
def earlier_launches(db: Database) -> None:
    """Which runs are alike, and their rungs whole: earlier launches tell the noise of a machine."""
    db.table("runs").add_column("alike", str)
    db.table("measurements").add_column("rung", str)
    db.table("runs").create_index(["alike", "created_at"])


@migrations()
def energy(db: Database) -> None:
    """What a rung cost in energy, and the fastest rungs of a concurrency without sorting all of them."""
    for column in ("energy_j", "power_w"):
        db.table("measurements").add_column(column, float)
    db.table("measurements").create_index(["concurrency", "output_tok_s"])


def open_store(path: Path) -> Database:
    """The store, created and migrated where needed. Raises InputError when the file is not a store."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = Database(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S))
        db.execute("PRAGMA foreign_keys = on")
        if migrations.pending(db):
            _migrate_alone(db)
    except (sqlite3.Error, OSError) as error:
        raise InputError(
            f"cannot open the findings store {path}: {error}. It is only an index: move it away, and "
            "`moeagent findings --rebuild` makes it again from the tapes"
        ) from None
    return db


def _migrate_alone(db: Database) -> None:
    """Two runs that start together must not both create the tables: the second waits and finds them there."""
    path = db.execute("PRAGMA database_list").fetchone()[2]
    with closing(sqlite3.connect(f"{path}.lock", timeout=BUSY_TIMEOUT_S, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        db.enable_wal()
        migrations.apply(db)
        lock.execute("ROLLBACK")


@contextmanager
def write_transaction(db: Database) -> Iterator[None]:
    """Take the write lock at the start: a transaction that becomes a writer later fails under load."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.commit()
    except BaseException:
        db.rollback()
        raise
