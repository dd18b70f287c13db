"""What docs/schema.md says of the store is so."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from parts.made_run import write_run

from moeagent.memory.findings.documented import QUESTIONS, TABLES
from moeagent.memory.findings.rebuild import rebuild
from moeagent.memory.findings.schema import open_store
from moeagent.memory.review import Review, append_review


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = write_run(tmp_path, "one")
    append_review(folder, Review(at="2026-11-29", about="H2", judgement="rejected", text="another job ran"))
    rebuild(tmp_path, tmp_path / "findings.db")
    return tmp_path / "findings.db"


def test_every_table_and_column_has_a_meaning(tmp_path: Path) -> None:
    db = open_store(tmp_path / "findings.db")
    ours = {t for t in db.table_names() if not t.startswith(("_", "sqlite_", "hypotheses_fts"))}
    assert ours == set(TABLES)
    for table, (_, meanings) in TABLES.items():
        assert [c.name for c in db.table(table).columns] == list(meanings)
    db.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_plain_sqlite_answers_every_question(store: Path, question: str) -> None:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as plain:
        rows = plain.execute(QUESTIONS[question]).fetchall()
    assert rows or "expert parallelism" in question


def test_a_store_of_the_version_before_is_brought_up_to_date(tmp_path: Path, store: Path) -> None:
    with closing(sqlite3.connect(store)) as plain:
        plain.execute("drop index idx_measurements_concurrency_output_tok_s")
        plain.execute("alter table measurements drop column energy_j")
        plain.execute("alter table measurements drop column power_w")
        plain.execute("delete from _sqlite_migrations where name = 'energy'")
        plain.commit()
    db = open_store(store)
    assert {"energy_j", "power_w"} <= {c.name for c in db.table("measurements").columns}
    db.close()
