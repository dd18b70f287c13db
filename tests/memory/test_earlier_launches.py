"""Which launches of other runs tell the noise of this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moeagent.memory.findings.alike import Alike
from moeagent.memory.findings.earlier import MOST_RUNS, earlier_launches
from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.ledger import CampaignFacts, Incumbent, Ledger
from moeagent.memory.records import (
    ClientHealth,
    HostFacts,
    Launch,
    LaunchOutcome,
    ModelFacts,
    Rung,
    Scope,
    ServerConfig,
    Workload,
)
from moeagent.memory.review import Review

SCOPE = Scope(gpu="H200", gpu_count=1, engine="vllm", engine_version="0.25.1", model="moe")
CONFIG = ServerConfig(engine="vllm", flags={"--max-num-seqs": 256})
OTHER = ServerConfig(engine="vllm", flags={"--max-num-seqs": 512})
ALIKE = Alike(machine="m", scope=SCOPE, workload=Workload(), load_from="auto", config=CONFIG)


def launch(number: int, speed: float, config: ServerConfig = CONFIG) -> Launch:
    rungs = (
        Rung(
            concurrency=c, completed=9, failed=0, duration_s=9.0, output_tok_s=speed * c, total_tok_s=None,
            client=ClientHealth(cpu_s=1.0, loop_lag_ms=0.1, valid=True), raw="name",
        )
        for c in (1, 8)
    )  # fmt: skip
    return Launch(
        id=f"L{number}", hypothesis=None, config=config, command="vllm serve",
        outcome=LaunchOutcome.COMPLETED, rungs=tuple(rungs),
    )  # fmt: skip


def index(store: FindingsStore, run: str, *launches: Launch, machine: str = "m", **workload: Any) -> None:
    """Write a run that began at its name's time."""
    ledger = Ledger()
    ledger.add(
        CampaignFacts(
            host=HostFacts(name="box", machine_id=machine), engine="vllm", engine_version="0.25.1",
            knobs_source="parser", knob_count=1, model=ModelFacts(path="/moe"), scope=SCOPE,
        )
    )  # fmt: skip
    ledger.add(Incumbent(config=CONFIG, hypothesis=None))
    for each in launches:
        ledger.add(each)
    settings = {"goal": {"name": "max-throughput"}, "workload": Workload(**workload).model_dump(mode="json")}
    store.index(run, {"created_at": run, "settings": settings}, ledger)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FindingsStore]:
    made = FindingsStore(tmp_path / "findings.db")
    yield made
    made.close()


def test_launches_of_the_same_baseline_come_back_whole_and_run_by_run(store: FindingsStore) -> None:
    index(store, "one", launch(1, 100.0), launch(2, 101.0), launch(3, 150.0, OTHER))
    index(store, "two", launch(1, 99.0), seed=7)
    index(store, "now", launch(1, 98.0))

    found = earlier_launches(store, ALIKE, "now")

    assert [[x.id for x in run] for run in found] == [["L1", "L2"], ["L1"]]
    assert found[0][1].config == CONFIG
    assert [r.output_tok_s for r in found[0][1].rungs] == [101.0, 808.0]


@pytest.mark.parametrize(
    "other", [{"machine": "elsewhere"}, {"output_len": 64}, {"prompts_per_slot": 9.0}, {"ladder": (1, 8)}]
)
def test_another_machine_or_another_load_says_nothing(store: FindingsStore, other: dict[str, Any]) -> None:
    index(store, "one", launch(1, 100.0), **other)

    assert earlier_launches(store, ALIKE, "now") == ()


def test_copies_in_a_fork_count_once_and_rejected_launches_not_at_all(store: FindingsStore) -> None:
    index(store, "one", launch(1, 100.0), launch(2, 101.0))
    index(store, "two-fork", launch(1, 100.0), launch(2, 101.0), launch(3, 102.0))
    store.judge("one", [Review(about="L2", judgement="rejected", text="somebody else used the GPU", at="x")])

    found = earlier_launches(store, ALIKE, "now")

    speeds = [[x.rungs[0].output_tok_s for x in run] for run in found]
    assert speeds == [[100.0], [102.0]]


def test_only_the_newest_runs_count(store: FindingsStore) -> None:
    for number in range(MOST_RUNS + 3):
        index(store, f"2026-{number:02}", launch(1, 100.0 + number))

    found = earlier_launches(store, ALIKE, "now")

    assert len(found) == MOST_RUNS
    assert found[0][0].rungs[0].output_tok_s == 103.0
