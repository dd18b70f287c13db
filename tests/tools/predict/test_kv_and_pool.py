"""KV bytes per token and pool sizes against published logs."""

import pytest
from fixtures.predict.shapes import campaign, model, settings, sglang, sm120, vllm

from moeagent.tools.predict.kv import GIB, kv_bytes_per_token, pool_tokens
from moeagent.tools.predict.machine import machine_from_name
from moeagent.tools.predict.memory import memory_table

VLLM_MTP = vllm(tensor_parallel_size=8, kv_cache_dtype="fp8", spec_method="mtp")


@pytest.mark.parametrize(
    ("name", "config", "measured"),
    [
        ("GLM-5.1-NVFP4", campaign(), 55_224),
        ("GLM-5.1-NVFP4", campaign(), (60.89 - 59.50) * GIB / (517_632 - 490_880)),
        ("GLM-5.1-NVFP4", sglang(tp=8, kv_cache_dtype="bf16"), 29.32 * GIB / 314_304),
        ("GLM-5.1-NVFP4", sglang(tp=8), 23.91 * GIB / 464_768),
        ("GLM-5.1-NVFP4", VLLM_MTP, 19.12 * GIB / 329_792),
        ("Kimi-K2.5", sglang(tp=8), 70_272),
        ("Kimi-K2.5", sglang(tp=8, kv_cache_dtype="fp8_e4m3"), 35_136),
        ("Qwen3-30B-A3B", vllm(), 68.18 * GIB / 744_688),
    ],
)  # fmt: skip
def test_bytes_per_token(name, config, measured):
    found = kv_bytes_per_token(model(name), settings(config))
    assert found == pytest.approx(measured, rel=0.011)


def test_mla_is_not_divided_by_tp_and_gqa_is():
    assert kv_bytes_per_token(model("Kimi-K2.5"), settings(sglang(tp=8))) == kv_bytes_per_token(
        model("Kimi-K2.5"), settings(sglang(tp=1))
    )
    one = kv_bytes_per_token(model("MiniMax-M2.5"), settings(sglang(tp=1)))
    assert kv_bytes_per_token(model("MiniMax-M2.5"), settings(sglang(tp=4))) == one / 4
    assert kv_bytes_per_token(model("Qwen3-30B-A3B"), settings(sglang(tp=8))) == one_head("Qwen3-30B-A3B")


def one_head(name: str) -> float:
    group = model(name).attention[0]
    return group.layers * (group.head_dim + group.v_head_dim) * 2


@pytest.mark.parametrize(("weights", "tokens", "doubt"), [(60.89, 490_880, 0), (59.50, 517_632, 0.001)])
def test_the_campaigns_pools_from_stated_inputs(weights, tokens, doubt):
    """0.92 of 93.63 GiB free, less the weights that the engine printed, in pages of 64 tokens."""
    found = pool_tokens(0.92 * 93.63 - weights, 55_224, 64)
    assert found == pytest.approx(tokens, rel=doubt)


def test_pool_tokens_are_whole_pages_and_never_negative():
    assert pool_tokens(1.0, 1000, 64) % 64 == 0
    assert pool_tokens(-1.0, 1000, 64) == 0
    assert pool_tokens(1.0, 0, 64) == 0


def test_vllm_pool_on_one_h200():
    """Measured with dummy weights: model 56.88 GiB, KV 68.18 GiB = 744,688 tokens at 0.92."""
    found = memory_table(
        machine_from_name("H200"), model("Qwen3-30B-A3B"), settings(vllm(max_model_len=8192))
    )
    assert found.weights_gib == pytest.approx(56.88, rel=0.005)
    assert found.kv_pool_gib == pytest.approx(68.18, rel=0.05)
    assert found.kv_tokens == pytest.approx(744_688, rel=0.05)


def test_recurrent_states_take_their_share_of_the_pool():
    hybrid = memory_table(sm120(4), model("Qwen3.5-397B-A17B-NVFP4"), settings(sglang(tp=4)))
    assert hybrid.kv_tokens > 0
    assert hybrid.max_running < 4096
