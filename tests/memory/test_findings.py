"""The findings store: an index over runs, scoped."""

import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from moeagent.memory.errors import InputError
from moeagent.memory.findings.store import FindingsStore, workload_text
from moeagent.memory.ledger import CampaignFacts, Ledger
from moeagent.memory.records import (
    ConfigChange,
    HostFacts,
    Hypothesis,
    ModelFacts,
    Scope,
    Verdict,
    VerdictKind,
    Workload,
)

SCOPE = Scope(gpu="RTX PRO 6000", gpu_count=8, engine="sglang", engine_version="0.5.9", model="GLM-5")
HEADER = {
    "created_at": "2026-11-29T20:00:00Z",
    "settings": {"goal": {"name": "max-throughput"}, "workload": Workload().model_dump(mode="json")},
}
WORKLOAD = workload_text(Workload())


def ledger_with(verdict: VerdictKind = VerdictKind.BLOCKED, scope: Scope = SCOPE) -> Ledger:
    ledger = Ledger()
    ledger.add(
        CampaignFacts(
            host=HostFacts(name="gpu1", machine_id="m"),
            engine="sglang",
            engine_version="0.5.9",
            knobs_source="parser",
            knob_count=3,
            model=ModelFacts(path="/models/GLM-5"),
            scope=scope,
        )
    )
    change = ConfigChange(set_flags={"--moe-a2a-backend": "flashinfer"})
    ledger.add(
        Hypothesis(
            id="H1",
            statement="Expert parallelism makes wider GEMMs",
            reason="whole experts per GPU",
            change=change,
            parent="p",
            refuted_by="no gain at 256",
            source="playbook",
        )
    )
    ledger.add(Verdict(hypothesis="H1", kind=verdict, reason="died at 256: oom.cuda.serve"))
    return ledger


def index_one(path: str, n: int) -> None:
    store = FindingsStore(Path(path))
    for _ in range(3):
        store.index(f"run{n:02}", HEADER, ledger_with())
    store.close()


def test_later_run_knows_what_an_earlier_one_refuted(tmp_path: Path) -> None:
    store = FindingsStore(tmp_path / "findings.db")
    store.index("run1", HEADER, ledger_with())
    (finding,) = store.known(SCOPE, WORKLOAD, "max-throughput", besides="run2")
    assert finding.exact
    assert finding.kind is VerdictKind.BLOCKED
    assert finding.change.set_flags == {"--moe-a2a-backend": "flashinfer"}
    assert store.known(SCOPE, WORKLOAD, "max-throughput", besides="run1") == []
    store.close()


@pytest.mark.parametrize(
    ("other", "found", "exact"),
    [
        ({"engine_version": "0.5.23"}, 1, False),
        ({"model": "Kimi"}, 1, False),
        ({"gpu": "H200", "model": "Kimi"}, 0, False),
        ({"simulated": True}, 0, False),
        ({"engine": "vllm"}, 0, False),
    ],
)
def test_another_scope_is_a_hint_or_nothing(
    tmp_path: Path, other: dict[str, object], found: int, exact: bool
) -> None:
    store = FindingsStore(tmp_path / "findings.db")
    store.index("run1", HEADER, ledger_with())
    known = store.known(SCOPE.model_copy(update=other), WORKLOAD, "max-throughput", besides="x")
    assert [f.exact for f in known] == [exact] * found
    store.close()


def test_an_inconclusive_verdict_is_no_knowledge(tmp_path: Path) -> None:
    store = FindingsStore(tmp_path / "findings.db")
    store.index("run1", HEADER, ledger_with(VerdictKind.INCONCLUSIVE))
    assert store.known(SCOPE, WORKLOAD, "max-throughput", besides="x") == []
    store.close()


def test_full_text_search(tmp_path: Path) -> None:
    store = FindingsStore(tmp_path / "findings.db")
    store.index("run1", HEADER, ledger_with())
    assert [row["id"] for row in store.search("expert parallelism")] == ["H1"]
    assert store.search('hostile " AND * NEAR(') == []
    store.close()


def test_fifty_runs_side_by_side_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "findings.db"
    with ProcessPoolExecutor(8) as pool:
        list(pool.map(index_one, [str(path)] * 50, range(50)))
    with closing(sqlite3.connect(path)) as store:
        for table in ("runs", "hypotheses"):
            assert store.execute(f"select count(*) from {table}").fetchone() == (50,)


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "findings.db"
    path.write_bytes(b"not a database, but long enough to be read as one" * 40)
    with pytest.raises(InputError, match=r"only an index"):
        FindingsStore(path)
