"""The readers of real logs read the simulated ones: engine, diagnosis."""

import pytest

from moeagent.memory.records import FlagValue
from moeagent.tools.diagnosis import diagnose
from moeagent.tools.engines.sglang import SglangEngine
from moeagent.tools.sim.machines import CAMPAIGNS, EP8_FLAGS, campaign_world
from moeagent.tools.sim.virtual import VirtualMachine, VirtualOutcome

ENGINE = SglangEngine()


def launched(key: str, flags: dict[str, FlagValue]) -> VirtualOutcome:
    campaign = CAMPAIGNS[key]
    config = campaign.baseline.model_copy(update={"flags": {**campaign.baseline.flags, **flags}})
    return VirtualMachine(campaign_world(key, 0)).launch(config, campaign.workload, 1)


def test_the_engine_reads_memory_and_settings_from_the_log() -> None:
    outcome = launched("A", dict(EP8_FLAGS))
    memory = ENGINE.memory(outcome.log)
    assert memory["weights_gib"] == 59.50
    assert memory["kv_tokens"] == 517632
    effective = ENGINE.effective(None, outcome.log)
    assert effective["--ep-size"] == 8
    assert effective["--mem-fraction-static"] == 0.92


def test_a_draft_model_is_a_second_load_and_counts_as_weights() -> None:
    flags: dict[str, FlagValue] = {"--speculative-algorithm": "EAGLE", "--mem-fraction-static": 0.85}
    outcome = launched("A", flags)
    assert "NextN" in outcome.log
    memory = ENGINE.memory(outcome.log)
    assert memory["weights_gib"] == pytest.approx(outcome.memory["weights_gib"], abs=0.011)
    assert memory["weights_gib"] > launched("A", {}).memory["weights_gib"] + 1


@pytest.mark.parametrize(
    ("key", "flags", "failure_class", "direction"),
    [
        ("A", dict(EP8_FLAGS), "oom.cuda.serve", "lower"),
        ("A", {"--mem-fraction-static": 0.94}, "oom.cuda.serve", "lower"),
        ("A", {"--mem-fraction-static": 0.98}, "oom.graph_capture", "lower"),
        ("A", {"--tp-size": 4}, "oom.weights", "raise"),
        ("A", {"--enable-torch-symm-mem": True}, "kernel.unsupported_arch", "remove"),
        ("A", {"--attention-backend": "fa3"}, "kernel.unsupported_arch", "replace"),
        ("A", {"--no-such-flag": 1}, "config.invalid_arg", "remove"),
        ("B", dict(EP8_FLAGS), "oom.kv_pool.startup", "raise"),
    ],
)
def test_a_failure_is_diagnosed_by_its_cause(
    key: str, flags: dict[str, FlagValue], failure_class: str, direction: str
) -> None:
    diagnosis = diagnose(launched(key, flags).log, engine="sglang")
    assert diagnosis.failure_class == failure_class
    assert diagnosis.remedies[0].direction == direction


@pytest.mark.parametrize(
    ("key", "flags"),
    [
        ("A", {}),
        ("B", {}),
        ("A", {**EP8_FLAGS, "--mem-fraction-static": 0.75, "--max-running-requests": 512}),
    ],
)
def test_a_healthy_server_is_called_healthy(key: str, flags: dict[str, FlagValue]) -> None:
    assert diagnose(launched(key, flags).log, engine="sglang", alive=True).healthy
