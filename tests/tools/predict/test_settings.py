"""Flags and environment as engine-neutral settings."""

import pytest
from fixtures.predict.shapes import settings, sglang, vllm

from moeagent.memory.errors import InputError
from moeagent.memory.records import ServerConfig


def test_aliases_and_layout_of_sglang():
    found = settings(ServerConfig(engine="sglang", flags={"--tp": 8, "--moe-a2a-backend": "flashinfer"}))
    assert (found.tp, found.expert_ep, found.expert_ranks, found.gpus) == (8, 8, 8, 8)
    private = settings(sglang(tp_size=8, dp_size=8, enable_dp_attention=True))
    assert (private.attention_tp, private.attention_dp, private.gpus, private.replicas) == (1, 8, 8, 1)
    copies = settings(sglang(tp_size=4, dp_size=2))
    assert (copies.attention_tp, copies.replicas, copies.gpus) == (4, 2, 8)


def test_layout_of_vllm():
    found = settings(
        ServerConfig(engine="vllm", flags={"-tp": 2, "-dp": 4, "--enable-expert-parallel": True})
    )
    assert (found.attention_tp, found.attention_dp, found.expert_ranks, found.expert_ep) == (2, 4, 8, 8)
    assert found.gpus == 8
    assert found.has_a2a
    assert settings(vllm(tensor_parallel_size=8)).expert_ep == 1


def test_speculation_as_json_and_as_flags():
    wide = settings(vllm(speculative_config='{"method": "mtp", "num_speculative_tokens": 2}'))
    assert (wide.spec_algorithm, wide.draft_steps, wide.draft_tokens) == ("mtp", 2, 3)
    flags = settings(
        sglang(speculative_algorithm="EAGLE3", speculative_num_steps=3, speculative_num_draft_tokens=4)
    )
    assert flags.draft_tokens == 4
    assert settings(sglang()).draft_tokens == 1


def test_environment_selects_the_fabric():
    tuned = ServerConfig(engine="sglang", env={"NCCL_MIN_NCHANNELS": "8"})
    assert settings(tuned).fabric_variant == "tuned"
    few = ServerConfig(engine="sglang", env={"NCCL_MIN_NCHANNELS": "2"})
    assert settings(few).fabric_variant == ""
    both = ServerConfig(engine="vllm", env={"NCCL_GRAPH_FILE": "g.xml", "VLLM_ENABLE_PCIE_ALLREDUCE": "1"})
    assert settings(both).fabric_variant == "oneshot"


def test_flags_that_no_formula_reads_are_named():
    found = settings(sglang(num_continuous_decode_steps=8, schedule_policy="lpm"))
    assert found.no_effect == ("--num-continuous-decode-steps",)
    assert found.unmodelled == ("--schedule-policy",)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (ServerConfig(engine="tensorrt"), "no prediction table"),
        (sglang(tp_size=0), "tp"),
        (sglang(mem_fraction_static=1.5), "mem_fraction"),
        (sglang(tp_size="eight"), "tp"),
        (vllm(speculative_config="{not json"), "not a JSON object"),
    ],
)
def test_malformed_configurations_are_input_errors(config, words):
    with pytest.raises(InputError, match=words):
        settings(config)
