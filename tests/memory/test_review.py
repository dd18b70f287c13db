"""What a reviewer writes is kept beside the tape and respected by later runs."""

import json
import sqlite3
from pathlib import Path

import pytest
from parts.made_run import GOAL, LADDER, facts, write_run

from moeagent.agent.reviewing import write_review
from moeagent.memory.errors import InputError, TapeError
from moeagent.memory.findings.query import Filters, find
from moeagent.memory.findings.rebuild import rebuild
from moeagent.memory.findings.store import FindingsStore, workload_text
from moeagent.memory.records import VerdictKind, Workload
from moeagent.memory.review import last_judgements, read_reviews
from moeagent.memory.run_folder import RunFolder

SCOPE = facts().scope
WORKLOAD = workload_text(Workload(ladder=LADDER))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A runs folder with one indexed run: H1 improved, H2 regressed, H3 blocked, H4 neutral, H5 open."""
    write_run(tmp_path)
    rebuild(tmp_path, tmp_path / "findings.db")
    return tmp_path


def known(root: Path) -> list[str]:
    store = FindingsStore(root / "findings.db")
    found = store.known(SCOPE, WORKLOAD, GOAL.name, besides="later")
    store.close()
    return [f.kind.value for f in found]


def test_a_rejected_finding_is_not_known_until_it_is_confirmed_again(root: Path) -> None:
    folder = RunFolder(root / "made")
    assert known(root) == ["improved", "regressed", "blocked", "neutral"]
    write_review(folder, root, "H2", "another job ran", "rejected")
    assert known(root) == ["improved", "blocked", "neutral"]
    write_review(folder, root, "H2", "", "confirmed")
    assert known(root) == ["improved", "regressed", "blocked", "neutral"]


def test_a_rejected_diagnosis_takes_the_blocked_finding_with_it(root: Path) -> None:
    write_review(RunFolder(root / "made"), root, "L6", "the driver was broken", "rejected")
    assert known(root) == ["improved", "regressed", "neutral"]


def test_reviews_are_appended_and_survive_a_rebuild(root: Path) -> None:
    folder = RunFolder(root / "made")
    tape = folder.tape.read_bytes()
    write_review(folder, root, "H1", "look at the log")
    write_review(folder, root, "H1", "noise", "rejected")
    assert [(r.about, r.judgement) for r in read_reviews(folder)] == [("H1", None), ("H1", "rejected")]
    assert last_judgements(read_reviews(folder))["H1"].text == "noise"
    (root / "findings.db").unlink()
    rebuild(root, root / "findings.db")
    assert "improved" not in known(root)
    assert folder.tape.read_bytes() == tape


def test_a_note_alone_changes_nothing_for_later_runs(root: Path) -> None:
    write_review(RunFolder(root / "made"), root, "run", "quiet night")
    assert len(known(root)) == 4


def test_an_id_that_does_not_exist_is_refused(root: Path) -> None:
    with pytest.raises(InputError, match="has no 'H9'; it has H1, H2"):
        write_review(RunFolder(root / "made"), root, "H9", "x")
    assert not (root / "made" / "review.jsonl").exists()


def test_a_damaged_review_line_is_named(root: Path) -> None:
    (root / "made" / "review.jsonl").write_text('{"about": "H1"}\n')
    with pytest.raises(TapeError, match="line 1 is not a review"):
        read_reviews(RunFolder(root / "made"))


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["H1", "H2", "H3", "H4", "H5"]),
        ({"verdict": VerdictKind.BLOCKED}, ["H3"]),
        ({"gpu": "rtx pro"}, ["H1", "H2", "H3", "H4", "H5"]),
        ({"gpu": "h200"}, []),
        ({"engine": "sglang", "model": "glm", "limit": 1}, ["H1"]),
        ({"flag": "chunked-prefill-size", "verdict": VerdictKind.NEUTRAL}, ["H4"]),
        ({"flag": "prefill-size"}, []),
        ({"text": "chunked blocked"}, ["H3"]),
        ({"text": "hostile \" AND * NEAR( ' ; drop table runs"}, []),
    ],
)
def test_findings_are_found_by_text_and_filters(
    root: Path, filters: dict[str, object], found: list[str]
) -> None:
    store = FindingsStore(root / "findings.db")
    rows = find(store, Filters.model_validate(filters))
    store.close()
    assert sorted(row["id"] for row in rows) == found


def test_gain_is_given_for_improvements_only(root: Path) -> None:
    store = FindingsStore(root / "findings.db")
    gains = {row["id"]: row["gain"] for row in find(store, Filters())}
    store.close()
    assert gains.pop("H1") == pytest.approx(0.08)
    assert set(gains.values()) == {None}


def test_rebuild_leaves_out_damaged_runs_and_forgets_those_that_are_gone(root: Path) -> None:
    write_run(root, "second")
    write_run(root, "damaged")
    rebuild(root, root / "findings.db")
    tape = root / "damaged" / "tape.jsonl"
    tape.write_bytes(tape.read_bytes().replace(b"neutral", b"n3utral"))
    (root / "second" / "tape.jsonl").unlink()
    done = rebuild(root, root / "findings.db")
    assert done.indexed == ("made",)
    assert "checksum" in done.skipped["damaged"]
    db = sqlite3.connect(root / "findings.db")
    assert db.execute("select distinct run from measurements").fetchall() == [("made",)]
    db.close()


def test_rebuild_moves_a_file_away_that_is_no_store(root: Path) -> None:
    (root / "findings.db").write_bytes(b"not a database, but long enough to be read as one" * 40)
    done = rebuild(root, root / "findings.db")
    assert done.moved_away
    assert Path(done.moved_away).read_bytes().startswith(b"not a database")
    assert known(root)


def test_a_run_that_was_reviewed_before_it_was_indexed_keeps_its_review(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    write_review(folder, tmp_path, "H1", "no", "rejected")
    store = FindingsStore(tmp_path / "findings.db")
    tape = folder.read_tape()
    from moeagent.memory.run_view import RunView

    store.index(folder.id, tape.header, RunView.of_tape(tape).ledger)
    store.close()
    assert "improved" not in known(tmp_path)
    assert json.loads((folder.path / "review.jsonl").read_text())["judgement"] == "rejected"
