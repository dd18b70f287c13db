"""The chance that a server dies."""

import pytest
from fixtures.predict.shapes import LADDER, campaign, model, sglang, sm120, vllm

from moeagent.memory.records import ServerConfig
from moeagent.tools.predict.machine import machine_from_name
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Machine, ModelShape, Unknown
from moeagent.tools.predict.risk import risk, risk_of

GLM = model("GLM-5.1-NVFP4")


def chance(
    config: ServerConfig, machine: Machine | None = None, shape: ModelShape = GLM
) -> tuple[float, str]:
    host = machine or sm120()
    return risk_of(config, predict(config, host, shape, LADDER), host, shape)


def test_order_of_risks():
    safe = chance(campaign(mem_fraction_static=0.75))[0]
    base = chance(campaign())[0]
    ep = chance(campaign(moe_a2a_backend="flashinfer"))[0]
    assert safe < 0.05 < base < ep < 0.97


def test_what_surely_dies():
    for config, words in [
        (sglang(tp=16), "16 GPUs"),
        (sglang(tp=1), "does not fit"),
    ]:
        found, why = chance(config)
        assert found > 0.9
        assert words in why


def test_published_hazards_name_their_stage():
    piecewise, why = chance(campaign(mem_fraction_static=0.8, enable_piecewise_cuda_graph=True))
    assert piecewise > 0.8
    assert why.startswith("capture")
    bf16 = model("Qwen3-235B-A22B")
    config = sglang(tp=8, enable_piecewise_cuda_graph=True)
    assert chance(config, machine_from_name("8x H200"), bf16)[0] < 0.5


def test_a_hazard_of_many_streams_on_a_card_is_not_one_where_each_card_has_its_share():
    alone = campaign(mem_fraction_static=0.75, moe_a2a_backend="flashinfer")
    shared = campaign(
        mem_fraction_static=0.75, moe_a2a_backend="flashinfer", enable_dp_attention=True, dp_size=8
    )
    assert "died at concurrency 256" in chance(alone)[1]
    assert "died at concurrency 256" not in chance(shared)[1]


def test_vllm_at_the_edge_of_the_card():
    h200, shape = machine_from_name("H200"), model("Qwen3-30B-A3B")
    edge = vllm(gpu_memory_utilization=0.995, max_model_len=8192)
    assert chance(edge, h200, shape)[0] > 0.6
    assert chance(vllm(max_model_len=8192), h200, shape)[0] < 0.1


def test_unknowns_are_neither_safe_nor_sure():
    nothing = Unknown(what="the model", why="no config.json")
    prediction = predict(campaign(), sm120(), nothing, LADDER)
    found, why = risk(prediction)
    assert found == pytest.approx(0.2)
    assert "no config.json" in why
    assert risk_of(campaign(), prediction, sm120(), nothing)[0] == found
