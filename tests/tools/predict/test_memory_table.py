"""Weights per GPU, automatic fractions, buffers and verdicts of the campaign."""

import pytest
from fixtures.predict.shapes import campaign, model, settings, sglang, sm120, vllm

from moeagent.memory.records import ServerConfig
from moeagent.tools.predict.buffers import deepep_gib, flashinfer_gib
from moeagent.tools.predict.engine_rules import defaults
from moeagent.tools.predict.machine import machine_from_name
from moeagent.tools.predict.memory import memory_table
from moeagent.tools.predict.records import MemoryTable

GB_PER_GIB = 2**30 / 1e9


def table(name: str, config: ServerConfig, gpus: str = "8x RTX PRO 6000") -> MemoryTable:
    return memory_table(machine_from_name(gpus), model(name), settings(config))


def part(found: MemoryTable, name: str) -> float:
    return next((line.gib for line in found.lines if line.name == name), 0.0)


def test_weights_under_tp8():
    glm, kimi = table("GLM-5.1-NVFP4", campaign()), table("Kimi-K2.5", sglang(tp=8))
    assert glm.weights_gib == pytest.approx(55.6, abs=0.2)
    assert part(glm, "routed experts") == pytest.approx(47.46, abs=0.01)
    assert part(glm, "attention") == pytest.approx(6.67, abs=0.02)
    assert kimi.weights_gib == pytest.approx(71.9, abs=0.1)
    assert part(kimi, "vision tower") == pytest.approx(0.84, abs=0.04)


def test_expert_parallelism_moves_no_bytes_but_an_a2a_backend_replicates_shared_experts():
    plain, ep = table("Kimi-K2.5", sglang(tp=8)), table("Kimi-K2.5", sglang(tp=8, ep_size=8))
    a2a = table("Kimi-K2.5", sglang(tp=8, moe_a2a_backend="flashinfer"))
    assert ep.weights_gib == plain.weights_gib
    assert part(a2a, "shared experts") - part(plain, "shared experts") == pytest.approx(4.30, abs=0.02)
    assert part(a2a, "all-to-all buffers") > 1


def test_dp_attention_replicates_attention_and_pipeline_divides_layers():
    plain = table("GLM-5.1-NVFP4", campaign())
    private = table("GLM-5.1-NVFP4", campaign(dp_size=8, enable_dp_attention=True))
    staged = table("GLM-5.1-NVFP4", sglang(tp=4, pp_size=2, mem_fraction_static=0.92))
    assert private.weights_gib - plain.weights_gib == pytest.approx(18.9 + 1.9 + 1.5, abs=0.3)
    assert private.kv_tokens * 8 > 1.5 * plain.kv_tokens
    assert part(staged, "routed experts") == pytest.approx(part(plain, "routed experts"))


def test_on_the_fly_fp8_halves_a_bf16_checkpoint():
    bf16 = table("Qwen3-235B-A22B", sglang(tp=8))
    fp8 = table("Qwen3-235B-A22B", sglang(tp=8, quantization="fp8"))
    assert part(fp8, "routed experts") == pytest.approx(part(bf16, "routed experts") / 2)


# sglang 0.5.9 by its own rule: tp 1, 2, 4, 8, and tp 4 with chunk 4096 and graphs up to 64 requests.
AUTOMATIC = {
    "RTX 5090": (0.885, 0.881, 0.869, 0.854, 0.776),
    "L40S": (0.851, 0.849, 0.837, 0.826, 0.842),
    "H100": (0.835, 0.834, 0.824, 0.818, 0.874),
    "RTX PRO 6000": (0.863, 0.861, 0.854, 0.848, 0.895),
    "H200": (0.907, 0.906, 0.900, 0.897, 0.929),
    "B200": (0.857, 0.856, 0.855, 0.852, 0.944),
}


@pytest.mark.parametrize("gpu", AUTOMATIC)
def test_sglangs_automatic_fraction(gpu):
    machine, shape = machine_from_name(gpu), model("Qwen3-30B-A3B")
    configs = [sglang(tp=tp) for tp in (1, 2, 4, 8)]
    configs.append(sglang(tp=4, chunked_prefill_size=4096, cuda_graph_max_bs=64))
    found = [defaults(settings(c), shape, machine.memory_mib).fraction for c in configs]
    assert found == pytest.approx(AUTOMATIC[gpu], abs=0.0011)


def test_kimis_automatic_fraction_and_its_failure_under_ep():
    """0.778734296875 in the log: 0.856 for 8192/160, times the vision tower's factor."""
    plain = table("Kimi-K2.5", sglang(tp=8, cuda_graph_max_bs=160))
    ep = table("Kimi-K2.5", sglang(tp=8, cuda_graph_max_bs=160, moe_a2a_backend="flashinfer"))
    assert plain.fraction == pytest.approx(0.778734296875, abs=1e-9)
    assert plain.verdict == "tight"
    assert plain.kv_tokens > 0
    assert ep.verdict == "does_not_fit"
    assert "at start" in ep.why
    assert ep.kv_tokens == 0


def test_kimi_free_memory_after_weights():
    free = 93.63 - table("Kimi-K2.5", sglang(tp=8)).weights_gib
    assert free == pytest.approx(21.7, abs=0.3)


def test_ep8_at_092_is_launched_because_it_is_tight():
    ep = table("GLM-5.1-NVFP4", campaign(moe_a2a_backend="flashinfer"))
    safe = campaign(moe_a2a_backend="flashinfer", mem_fraction_static=0.75, max_running_requests=512)
    assert ep.verdict == "tight"
    assert ep.load_headroom_gib < 0 < ep.start_headroom_gib
    assert table("GLM-5.1-NVFP4", safe).verdict == "fits"


def test_a_model_that_is_too_large_is_refused_with_the_number():
    found = table("Kimi-K2.5", sglang(tp=4), gpus="4x RTX PRO 6000")
    assert found.verdict == "does_not_fit"
    assert "short by" in found.why


def test_a_draft_model_has_weights_and_graphs_of_its_own():
    plain, drafted, guessed = (
        table("GLM-5.1-NVFP4", campaign(**({"speculative_algorithm": name} if name else {})))
        for name in (None, "EAGLE", "NGRAM")
    )
    assert part(drafted, "CUDA graphs") == pytest.approx(1.4 * part(plain, "CUDA graphs"))
    assert part(guessed, "CUDA graphs") == part(plain, "CUDA graphs")
    assert part(drafted, "draft layers") > 1
    assert part(guessed, "draft layers") == 0


def test_memory_of_other_processes_counts():
    machine = sm120().model_copy(update={"used_mib": 30_000})
    found = memory_table(machine, model("GLM-5.1-NVFP4"), settings(campaign()))
    assert found.kv_tokens < table("GLM-5.1-NVFP4", campaign()).kv_tokens


def test_vllm_refuses_a_pool_smaller_than_one_request_and_a_budget_beyond_the_card():
    short = table("Qwen3-30B-A3B", vllm(max_model_len=4_000_000), gpus="H200")
    assert short.verdict == "does_not_fit"
    assert "one full request" in short.why
    high = table("Qwen3-30B-A3B", vllm(gpu_memory_utilization=0.995, max_model_len=8192), gpus="H200")
    assert high.verdict == "tight"
    busy = machine_from_name("H200").model_copy(update={"used_mib": 60_000})
    full = memory_table(busy, model("Qwen3-30B-A3B"), settings(vllm(max_model_len=8192)))
    assert full.verdict == "does_not_fit"
    assert "before the server is ready" in full.why


@pytest.mark.parametrize(
    ("gib", "gb"),
    [
        (flashinfer_gib(6144, 8, 8, 8192, fp4=True), 1.04),
        (flashinfer_gib(6144, 8, 8, 8192, fp4=False), 1.61),
        (flashinfer_gib(6144, 8, 8, 131_072, fp4=False), 25.8),
        (flashinfer_gib(7168, 8, 8, 8192, fp4=True), 1.21),
        (deepep_gib(6144, 256, 128), 1.64),
        (deepep_gib(6144, 256, 1024), 13.1),
        (deepep_gib(7168, 384, 512), 11.5),
    ],
)
def test_all_to_all_buffers(gib, gb):
    assert gib * GB_PER_GIB == pytest.approx(gb, rel=0.01)
