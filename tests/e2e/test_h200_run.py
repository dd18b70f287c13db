"""The committed run on a real H200 (vLLM 0.25.1, dummy weights): read, thought again, and learnt from."""

from pathlib import Path

import pytest

from moeagent.agent.rethink import rethink
from moeagent.agent.settings import load_settings
from moeagent.agent.show.equal_launches import equal_launches
from moeagent.agent.show.report import markdown
from moeagent.agent.steps.measure import STALLED
from moeagent.memory.records import LaunchOutcome
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView
from moeagent.tools.load.figures import recompute

ROOT = Path(__file__).parents[2]
H200 = RunFolder(ROOT / "runs" / "example-h200-vllm")


@pytest.fixture(scope="module")
def view() -> RunView:
    return RunView.read(H200)


def test_its_figures_can_be_computed_again(view: RunView) -> None:
    rungs = [rung for launch in view.ledger.launches for rung in launch.rungs]
    assert len(rungs) == 15
    for rung in rungs:
        again = recompute((H200.path / "load" / f"{rung.raw}.bin").read_bytes())
        assert again.output_tok_s == rung.output_tok_s
        assert rung.gpu is not None
        assert rung.gpu.power_w is not None


def test_rungs_in_which_the_engine_compiled_kernels_are_told_from_clean_ones(view: RunView) -> None:
    stood_still = set()
    for launch in view.ledger.launches:
        for rung in launch.rungs:
            share = recompute((H200.path / "load" / f"{rung.raw}.bin").read_bytes()).stalled
            assert share is not None
            if share > STALLED:
                stood_still.add((launch.id, rung.concurrency))
    # By eye, from the time to first token: 1.3 to 1.9 s in these and 0.15 to 0.75 s in all others.
    assert stood_still == {("L1", 32), ("L2", 32), ("L7", 32), ("L7", 256)}


def test_two_launches_of_the_default_are_judged_neutral_where_nothing_was_compiled(view: RunView) -> None:
    judged = {int(row[1]): row[-1] for row in equal_launches(view)}
    # At 32 the engine compiled kernels in both, as the test above shows.
    assert judged == {1: "neutral", 32: "above the 3% that count", 256: "neutral"}


def test_the_out_of_memory_is_diagnosed_better_today(view: RunView) -> None:
    died = [x for x in view.ledger.launches if x.outcome is LaunchOutcome.DIED_STARTING]
    assert [x.diagnosis.failure_class for x in died if x.diagnosis] == ["oom.kv_pool.startup"] * 3
    answer = rethink(H200)
    changed = {
        (decision.about, change.now)
        for decision in answer.decisions
        for change in decision.changes
        if change.field == "diagnosis.class"
    }
    assert changed == {(launch, "oom.cuda.serve") for launch in ("L3", "L4", "L5")}


def test_it_claims_nothing(view: RunView) -> None:
    text = markdown(view)
    assert "no change is shown to be better" in text
    assert "NVIDIA H200" in text
    assert not view.simulated


def test_its_settings_are_settings() -> None:
    settings = load_settings(ROOT / "examples" / "h200-vllm.toml", {})
    assert settings.engine.env["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
