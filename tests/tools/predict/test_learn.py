"""Corrections from earlier launches on the same host."""

import pytest
from fixtures.predict.shapes import LADDER, campaign, model, settings, sm120, vllm

from moeagent.memory.records import (
    ClientHealth,
    Diagnosis,
    Distribution,
    Launch,
    LaunchOutcome,
    Rung,
    ServerConfig,
    Workload,
)
from moeagent.tools.predict.calibration import Calibration, factor_at
from moeagent.tools.predict.learn import calibrate
from moeagent.tools.predict.machine import machine_from_name
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Unknown

GLM = model("GLM-5.1-NVFP4")
MEMORY = {"weights_gib": 60.89, "kv_tokens": 490_880.0}
EP8 = campaign(moe_a2a_backend="flashinfer")


def launch(
    config: ServerConfig,
    *,
    outcome: LaunchOutcome = LaunchOutcome.COMPLETED,
    memory: dict[str, float] | None = None,
    rungs: tuple[Rung, ...] = (),
    failure: str | None = None,
) -> Launch:
    diagnosis = None
    if failure:
        diagnosis = Diagnosis(
            failure_class=failure,
            confidence=0.9,
            root_line="x",
            line_no=1,
            stage="serving",
            explanation="x",
        )
    return Launch(
        id="L1", hypothesis=None, config=config, command="server", outcome=outcome, memory=memory or {},
        rungs=rungs, diagnosis=diagnosis,
    )  # fmt: skip


def rung(concurrency: int, tok_s: float, *, failed: int = 0) -> Rung:
    spread = Distribution(mean=100, p50=100, p90=100, p95=100, p99=100)
    return Rung(
        concurrency=concurrency, completed=10, failed=failed, duration_s=10, output_tok_s=tok_s,
        total_tok_s=tok_s, ttft_ms=spread, client=ClientHealth(cpu_s=1, loop_lag_ms=1, valid=True),
    )  # fmt: skip


def known(*launches: Launch) -> Calibration:
    return calibrate(launches, sm120(), GLM, LADDER)


def test_nothing_is_learnt_from_nothing():
    assert known() == Calibration()
    assert known(launch(campaign(), outcome=LaunchOutcome.DIED_STARTING)) == Calibration()


def test_the_engines_memory_lines_reproduce_its_pool():
    learnt = known(launch(campaign(), memory=MEMORY))
    found = predict(campaign(), sm120(), GLM, LADDER, learnt).memory
    assert found is not None
    assert learnt.free_gib == pytest.approx(93.63, abs=0.01)
    assert found.weights_gib == pytest.approx(60.89)
    assert found.kv_tokens == pytest.approx(490_880, abs=64)
    assert found.calibrated


def test_ep8_stays_tight_after_the_baseline_survived():
    learnt = known(launch(campaign(), memory=MEMORY))
    found = predict(EP8, sm120(), GLM, LADDER, learnt).memory
    assert found is not None
    assert found.verdict == "tight"


def test_the_weights_of_an_own_layout_win():
    own = launch(EP8, memory={"weights_gib": 59.50, "kv_tokens": 517_632}, outcome=LaunchOutcome.DIED_SERVING)
    found = predict(EP8, sm120(), GLM, LADDER, known(launch(campaign(), memory=MEMORY), own)).memory
    assert found is not None
    assert found.weights_gib == pytest.approx(59.50)
    assert found.kv_tokens == pytest.approx(517_632, rel=0.001)


def test_survivors_add_head_room_and_the_dead_take_it_from_their_layout():
    survived = known(launch(campaign()))
    died = known(launch(EP8, outcome=LaunchOutcome.DIED_SERVING, failure="oom.activation.serving"))
    base, ep = (predict(c, sm120(), GLM, LADDER).memory for c in (campaign(), EP8))
    after = predict(campaign(), sm120(), GLM, LADDER, survived).memory
    worse = predict(EP8, sm120(), GLM, LADDER, died).memory
    untouched = predict(campaign(), sm120(), GLM, LADDER, died).memory
    assert base is not None
    assert ep is not None
    assert after is not None
    assert worse is not None
    assert untouched is not None
    assert after.load_headroom_gib > base.load_headroom_gib
    assert worse.load_headroom_gib < ep.load_headroom_gib
    assert untouched.load_headroom_gib == base.load_headroom_gib


def test_a_survivor_lends_other_layouts_that_there_was_room_not_how_much():
    base = predict(campaign(), sm120(), GLM, LADDER).memory
    assert base is not None
    assert base.load_headroom_gib < 0.5
    learnt = known(launch(campaign()))
    own, lent = (learnt.headroom_shift(settings(c)) for c in (campaign(), EP8))
    assert base.load_headroom_gib + own == pytest.approx(1.5)
    assert base.load_headroom_gib + lent == pytest.approx(0.5)


def test_measured_rungs_correct_the_speed_and_narrow_the_range():
    plain = predict(campaign(), sm120(), GLM, LADDER)
    learnt = known(launch(campaign(), rungs=(rung(1, 40.0), rung(256, 1000.0), rung(1024, 1600.0, failed=3))))
    found = predict(campaign(), sm120(), GLM, LADDER, learnt)
    assert set(learnt.speed) == {1, 256}
    assert found.rungs[0].output_tok_s.value == pytest.approx(40.0)
    before, after = plain.rungs[0].output_tok_s, found.rungs[0].output_tok_s
    assert after.high / after.value < before.high / before.value


def test_factors_between_and_beyond_measured_concurrencies():
    assert factor_at({}, 8) is None
    assert factor_at({1: 0.8, 64: 1.2}, 8) == pytest.approx(1.0)
    assert factor_at({4: 0.8}, 1) == 0.8
    assert factor_at({4: 0.8}, 999) == 0.8


def test_vllm_learns_what_its_budget_spends_beside_weights_and_pool():
    config = vllm(max_model_len=8192)
    machine, shape = machine_from_name("H200"), model("Qwen3-30B-A3B")
    seen = launch(config, memory={"weights_gib": 56.88, "kv_tokens": 744_688})
    learnt = calibrate([seen], machine, shape, LADDER)
    found = predict(config, machine, shape, LADDER, learnt).memory
    assert found is not None
    assert found.kv_tokens == pytest.approx(744_688, rel=0.001)


def test_unknown_subjects_teach_nothing():
    seen = launch(campaign(), memory=MEMORY)
    assert calibrate([seen], Unknown(what="m", why="w"), GLM, Workload()) == Calibration()


def test_half_of_a_weights_correction_is_lent_to_another_layout():
    learnt = known(launch(campaign(), memory=MEMORY))
    own, other = settings(campaign()), settings(EP8)
    assert learnt.weights_offset(other) == pytest.approx(learnt.weights_offset(own) / 2)


DRAFTS = campaign(speculative_algorithm="EAGLE", speculative_num_steps=2, speculative_num_draft_tokens=3)
LONGER = campaign(speculative_algorithm="EAGLE", speculative_num_steps=4, speculative_num_draft_tokens=5)


def speeds(config: ServerConfig, learnt: Calibration | None = None) -> dict[int, float]:
    return {r.concurrency: r.output_tok_s.value for r in predict(config, sm120(), GLM, LADDER, learnt).rungs}


def test_speculation_that_does_better_than_the_formulas_speaks_for_longer_drafts():
    top = max(LADDER.ladder)
    base, drafts = speeds(campaign())[top], speeds(DRAFTS)[top]
    plain = launch(campaign(), rungs=(rung(top, base),))
    learnt = known(plain, launch(DRAFTS, rungs=(rung(top, 1.2 * drafts),)))
    assert speeds(DRAFTS, learnt)[top] == pytest.approx(1.2 * drafts)
    assert speeds(campaign(), learnt)[top] == pytest.approx(base)
    assert speeds(LONGER, learnt)[top] == pytest.approx(1.2**1.5 * speeds(LONGER)[top])


def test_the_graphs_of_longer_drafts_grow_as_those_of_a_launch_did():
    plain = predict(campaign(), sm120(), GLM, LADDER).memory
    assert plain is not None
    graphs = next(line.gib for line in plain.lines if line.name == "CUDA graphs")
    learnt = known(launch(DRAFTS, memory=MEMORY | {"graphs_gib": 2 * graphs}))
    longer = predict(LONGER, sm120(), GLM, LADDER, learnt).memory
    assert longer is not None
    assert next(line.gib for line in longer.lines if line.name == "CUDA graphs") == pytest.approx(3 * graphs)
