"""Whole predictions: speed, limits, problems, and what is not known."""

from itertools import pairwise

import pytest
from fixtures.predict.shapes import LADDER, campaign, model, sglang, sm120, vllm
from hypothesis import given, settings
from hypothesis import strategies as st

from moeagent.memory.errors import InputError
from moeagent.memory.records import HostFacts, ServerConfig, Workload
from moeagent.tools.predict.machine import machine_from_facts, machine_from_name
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Unknown

GLM = model("GLM-5.1-NVFP4")


def test_the_campaigns_baseline():
    """1,603 tok/s at 1024; lengths unknown, 1k/1k assumed; which NCCL profile is unknown too."""
    found = predict(campaign(), sm120(), GLM, LADDER)
    assert not found.problems
    top = found.rung(1024)
    assert top is not None
    assert top.output_tok_s.low < 1603 < 1.25 * top.output_tok_s.high
    assert top.limit == "kv capacity"
    assert top.running < 1024
    assert [r.concurrency for r in found.rungs] == list(LADDER.ladder)


def test_more_clients_never_finish_fewer_tokens_and_wait_longer():
    rungs = predict(campaign(), sm120(), GLM, LADDER).rungs
    for low, high in pairwise(rungs):
        assert high.output_tok_s.value > low.output_tok_s.value
        assert high.ttft_ms.value > low.ttft_ms.value
        assert high.tpot_ms.value > low.tpot_ms.value


def test_intervals_enclose_their_value():
    for rung in predict(campaign(), sm120(), GLM, LADDER).rungs:
        for estimate in (rung.output_tok_s, rung.ttft_ms, rung.tpot_ms):
            assert 0 < estimate.low < estimate.value < estimate.high


def test_terms_add_up_to_the_time_per_token():
    for rung in predict(campaign(), sm120(), GLM, LADDER).rungs:
        assert sum(rung.terms_ms.values()) == pytest.approx(rung.tpot_ms.value, rel=0.01)


@pytest.mark.parametrize(
    ("config", "concurrency", "lengths", "limit"),
    [
        (campaign(max_running_requests=64), 256, (1024, 1024), "batch cap"),
        (campaign(), 1024, (1024, 1024), "kv capacity"),
        (campaign(), 1, (1024, 1024), "memory bandwidth"),
        (campaign(disable_cuda_graph=True), 1, (1024, 1024), "host cpu"),
        (campaign(), 32, (4096, 128), "prefill interference"),
    ],
)
def test_what_limits_a_rung(config, concurrency, lengths, limit):
    load = Workload(input_len=lengths[0], output_len=lengths[1], ladder=(concurrency,))
    rung = predict(config, sm120(), GLM, load).rungs[0]
    assert rung.limit == limit
    assert rung.why


def test_a_slow_fabric_is_communication_bound():
    config = campaign().model_copy(update={"env": {"NCCL_P2P_DISABLE": "1"}})
    rung = predict(config, sm120(), GLM, Workload(ladder=(8,))).rungs[0]
    assert rung.limit == "communication"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (sglang(tp=16), "needs 16 GPUs"),
        (sglang(tp=3), "not divisible by 3"),
        (sglang(tp=8, dp_size=3, enable_dp_attention=True), "DP attention"),
        (sglang(tp=8, ep_size=3), "not divisible by"),
    ],
)
def test_what_cannot_work_is_said(config, words):
    found = predict(config, sm120(), GLM, LADDER)
    assert any(words in refusal for refusal in found.refusals)
    assert set(found.refusals) <= set(found.problems)
    assert not found.rungs


def test_unknowns_are_answers():
    nothing = Unknown(what="the model m", why="config.json lacks hidden_size")
    found = predict(campaign(), sm120(), nothing, LADDER)
    assert found.problems == ("the model m cannot be predicted: config.json lacks hidden_size",)
    machine = machine_from_facts(HostFacts(name="h", machine_id="m"))
    assert len(predict(campaign(), machine, nothing, LADDER).problems) == 2


def test_a_gpu_outside_the_table_keeps_its_memory_table():
    found = predict(campaign(), machine_from_name("8x Foo 96GB"), GLM, LADDER)
    assert found.memory is not None
    assert found.memory.kv_tokens > 0
    assert any("speed cannot be predicted" in problem for problem in found.problems)
    assert found.refusals == ()


def test_an_engine_without_a_table_is_an_input_error():
    with pytest.raises(InputError, match="use sglang, vllm or llamacpp"):
        predict(ServerConfig(engine="lmdeploy"), sm120(), GLM, LADDER)


def test_llamacpp_on_gpus_is_not_claimed():
    found = predict(ServerConfig(engine="llamacpp"), sm120(), GLM, LADDER)
    assert not found.rungs
    assert "llama.cpp on GPUs" in found.problems[0]


def test_notes_tell_published_effects_from_blind_spots():
    config = campaign(enable_mscclpp=True, schedule_policy="lpm", num_continuous_decode_steps=8)
    notes = " | ".join(predict(config, sm120(), GLM, LADDER).notes)
    assert "--enable-mscclpp: effect as published" in notes
    assert "not modelled, taken as without effect: --schedule-policy" in notes
    assert "known to change no measured figure: --num-continuous-decode-steps" in notes


def test_sources_are_named():
    found = predict(vllm(tensor_parallel_size=8), sm120(), GLM, LADDER)
    assert any("aiconfigurator-core" in source for source in found.sources)
    assert any("memory rule" in source for source in found.sources)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["sglang", "vllm"]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(["8x RTX PRO 6000", "8x H200", "8x B200", "8x L40S", "8x A100", "8x RTX 5090"]),
    st.sampled_from(["GLM-5.1-NVFP4", "Kimi-K2.5", "gpt-oss-120b", "Qwen3-30B-A3B", "Qwen3.5-397B-A17B"]),
    st.integers(1, 2048),
    st.integers(1, 40_000),
    st.integers(1, 8000),
)
def test_any_sane_configuration_gives_an_answer(engine, tp, gpus, name, concurrency, input_len, output_len):
    config = ServerConfig(engine=engine, flags={"--tensor-parallel-size": tp})
    load = Workload(input_len=input_len, output_len=output_len, ladder=(concurrency,))
    found = predict(config, machine_from_name(gpus), model(name), load)
    assert found.memory is not None
    assert bool(found.rungs) != bool(found.problems)
    for rung in found.rungs:
        assert rung.output_tok_s.value > 0
        assert 1 <= rung.running <= concurrency


def test_streams_that_just_do_not_fit_the_pool_cost_a_wave_of_their_own():
    """As many requests as fit twice end in two waves; a few that do not fit run as a third, alone."""

    def speed(tokens: int, **flags: float) -> float:
        config = campaign(max_total_tokens=tokens, **flags)
        load = Workload(input_len=1024, output_len=1024, ladder=(256,))
        return predict(config, sm120(), model("GLM-5.1-NVFP4"), load).rungs[0].output_tok_s.value

    fits, short = 256 * 1700, 250 * 1638
    assert speed(short) < 0.95 * speed(fits)
    assert speed(short, schedule_conservativeness=0.3) == pytest.approx(speed(fits), rel=0.02)
    assert speed(short, schedule_conservativeness=2.0) < speed(short)
