"""The committed runs on real H200s (vLLM 0.25.1, dummy weights): read, thought again, and learnt from."""

from pathlib import Path

import pytest

from moeagent.agent.rethink import rethink
from moeagent.agent.settings import CampaignSettings, load_settings, read_settings_file
from moeagent.agent.show.equal_launches import equal_launches
from moeagent.agent.show.html.page import page
from moeagent.agent.show.report import markdown
from moeagent.agent.show.spent import spent
from moeagent.agent.steps.measure import STALLED
from moeagent.memory.records import LaunchOutcome, VerdictKind
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView
from moeagent.tools.load.figures import recompute

ROOT = Path(__file__).parents[2]
H200 = RunFolder(ROOT / "runs" / "example-h200-vllm")
FP8 = RunFolder(ROOT / "runs" / "example-h200-fp8")


@pytest.fixture(scope="module")
def view() -> RunView:
    return RunView.read(H200)


@pytest.fixture(scope="module")
def fp8() -> RunView:
    return RunView.read(FP8)


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


def test_the_run_with_fp8_weights_is_decided_alike_today_and_its_ideas_are_ideas() -> None:
    assert not [decision for decision in rethink(FP8).decisions if decision.changes]
    ideas = read_settings_file(ROOT / "examples" / "h200-fp8-ideas.toml")["idea"]
    recorded = CampaignSettings(**FP8.read_tape().header["settings"]).idea
    assert CampaignSettings.model_validate({"idea": ideas}).idea == recorded


def test_a_gain_is_proven_with_three_launches_a_side(fp8: RunView) -> None:
    verdict = fp8.ledger.verdict("H1")
    assert verdict is not None
    assert verdict.goal_effect is not None
    assert (verdict.kind, verdict.goal_effect.launches) == (VerdictKind.IMPROVED, (3, 3))
    assert verdict.goal_effect.low > 0.4
    assert fp8.best is not None
    assert fp8.best.flags["--quantization"] == "fp8"


def test_an_out_of_memory_is_met_and_pivoted(fp8: RunView) -> None:
    died, survivor = fp8.ledger.launches_for("H2")
    assert died.diagnosis is not None
    assert (died.outcome, died.diagnosis.failure_class) == (LaunchOutcome.DIED_STARTING, "oom.cuda.serve")
    assert survivor.outcome is LaunchOutcome.COMPLETED
    assert survivor.config.flags["--gpu-memory-utilization"] == 0.945
    assert {rung.concurrency for rung in survivor.rungs} == {1, 32, 64, 128, 256}


def test_three_launches_of_the_default_on_two_gpus_are_judged_neutral(fp8: RunView) -> None:
    judged = {int(row[1]): row[-1] for row in equal_launches(fp8) if row[0] == "baseline"}
    assert judged == {1: "neutral", 32: "neutral", 256: "neutral"}


def test_the_loop_itself_takes_less_than_a_hundredth_of_the_time(fp8: RunView) -> None:
    tape = FP8.read_tape()
    used = spent(tape.header, tape.entries, fp8.ledger)
    assert used.own_s < 0.01 * used.active_s


def test_a_goal_that_the_fork_changed_is_the_goal_that_readers_see(fp8: RunView) -> None:
    held = "It holds tpot p50 at most 16 ms at concurrency 1, 32, not at 256."
    assert held in markdown(fp8)
    told = page(FP8, fp8)
    assert held in told
    assert "2,071 tok/s at 32" in told
    assert "4,550 tok/s at 32" in told
    assert fp8.to_json()["goal"]["constraints"][0]["metric"] == "tpot"
