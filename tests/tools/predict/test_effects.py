"""Effects of changes against their parent."""

import pytest
from fixtures.predict.shapes import LADDER, campaign, model, sm120, vllm

from moeagent.memory.records import PredictedEffect, ServerConfig
from moeagent.tools.predict.calibration import Calibration
from moeagent.tools.predict.effects import effects
from moeagent.tools.predict.machine import machine_from_name
from moeagent.tools.predict.records import Unknown

GLM = model("GLM-5.1-NVFP4")
BASE = campaign()


def of(child: ServerConfig, parent: ServerConfig = BASE) -> dict[int, PredictedEffect]:
    return {e.concurrency: e for e in effects(parent, child, sm120(), GLM, LADDER)}


def test_no_change_is_no_effect():
    for effect in of(BASE).values():
        assert effect.effect == pytest.approx(0)
        assert effect.low < 0 < effect.high


def test_a_flag_that_is_never_read_is_predicted_as_nothing():
    assert all(e.effect == 0 for e in of(campaign(num_continuous_decode_steps=8)).values())


def test_ep8_loses_at_small_concurrency_on_pcie():
    """The campaign measured -10 to -14 % at 1 and 10."""
    found = of(campaign(moe_a2a_backend="flashinfer"))
    assert found[1].low < -0.10 < found[1].high
    assert found[10].low < -0.10 < found[10].high
    assert found[1].effect < 0
    assert found[10].effect < 0


def test_a_tuned_fabric_gains_and_a_broken_one_loses():
    tuned = of(BASE.model_copy(update={"env": {"NCCL_MIN_NCHANNELS": "8"}}))
    broken = of(BASE.model_copy(update={"env": {"NCCL_P2P_DISABLE": "1"}}))
    assert tuned[64].effect > 0.05
    assert broken[1].effect < -0.2


def test_speculation_gains_most_alone():
    found = of(campaign(speculative_algorithm="NEXTN", speculative_num_steps=3))
    assert found[1].effect > 0.5
    assert found[1].effect > found[256].effect


def test_a_batch_cap_costs_only_above_it():
    found = of(campaign(max_running_requests=64))
    assert found[64].effect == pytest.approx(0, abs=0.01)
    assert found[256].effect < -0.3


def test_a_wider_cache_costs_where_capacity_binds():
    found = of(campaign(kv_cache_dtype="bfloat16"))
    assert abs(found[1].effect) < 0.02
    assert found[1024].effect < -0.1


def test_published_effects_stand_in_and_cancel():
    b12x = of(campaign(moe_runner_backend="b12x"))
    assert b12x[64].low <= b12x[64].effect <= -0.3
    both = of(campaign(moe_runner_backend="b12x"), parent=campaign(moe_runner_backend="b12x"))
    assert both[64].effect == pytest.approx(0)
    back = of(BASE, parent=campaign(moe_runner_backend="b12x"))
    assert back[64].effect > 0.3


def test_mscclpp_cannot_matter_at_high_concurrency():
    found = of(campaign(enable_mscclpp=True))
    assert 0 < found[1].effect < 0.05
    assert found[1024].effect == 0


def test_an_unmodelled_flag_widens_the_range():
    plain, odd = of(BASE)[64], of(campaign(schedule_policy="lpm"))[64]
    assert odd.effect == plain.effect
    assert odd.high - odd.low > plain.high - plain.low


def test_another_install_widens_the_range():
    other = of(BASE.model_copy(update={"install": "cuda13"}))[64]
    assert other.high - other.low > 0.15


def test_what_cannot_be_told_is_empty():
    assert effects(BASE, BASE, sm120(), Unknown(what="m", why="w"), LADDER) == ()
    assert effects(BASE, BASE, Unknown(what="m", why="w"), GLM, LADDER) == ()
    assert effects(BASE, campaign(tp_size=4), machine_from_name("4x RTX PRO 6000"), GLM, LADDER) == ()


def test_a_speed_correction_cancels():
    child = campaign(enable_mscclpp=True)
    known = Calibration(speed={1: 0.8, 1024: 0.8})
    plain = effects(BASE, child, sm120(), GLM, LADDER)
    corrected = effects(BASE, child, sm120(), GLM, LADDER, known)
    for one, two in zip(plain, corrected, strict=True):
        assert one.effect == pytest.approx(two.effect)


def test_context_parallelism_costs_speed():
    parent = vllm(tensor_parallel_size=8, max_model_len=16384)
    child = vllm(tensor_parallel_size=8, max_model_len=16384, decode_context_parallel_size=8)
    assert of(child, parent)[1].effect < -0.1
