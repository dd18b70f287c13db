"""Whole logs: the real servers' own, and the situations of the campaign."""

import json

import pytest
from bench.diagnosis.scoring import FIXTURES

from moeagent.tools.diagnosis import diagnose

REAL = json.loads((FIXTURES / "real_logs" / "expected.json").read_text())


@pytest.mark.parametrize("name", REAL)
def test_real_server_logs(name):
    answer = diagnose(FIXTURES / "real_logs" / name)
    assert answer.failure_class in REAL[name]
    assert answer.healthy == (REAL[name] == ["benign.none"])
    line = (FIXTURES / "real_logs" / name).read_bytes().split(b"\n")[answer.line_no - 1]
    assert answer.root_line == line.decode().rstrip("\r")


def campaign(name):
    return diagnose(FIXTURES / "campaign" / name)


def test_crash_under_load_is_the_allocation_and_not_the_frames_below_it():
    answer = campaign("ep8_crash_at_256.log")
    assert answer.failure_class == "oom.cuda.serve"
    assert answer.stage == "serving"
    assert "Tried to allocate 3.50 GiB" in answer.root_line
    assert answer.ranks == ("TP3 EP3", "TP0 EP0", "TP5 EP5")
    first = answer.remedies[0]
    assert (first.target, first.direction) == ("--mem-fraction-static", "lower")
    assert first.value < 0.92
    assert any(r.target == "--max-running-requests" and r.direction == "lower" for r in answer.remedies)
    assert any("ClientPayloadError" in symptom.line for symptom in answer.symptoms)


def test_skipped_tactics_are_benign_when_the_server_becomes_ready():
    answer = campaign("ep8_memory_safe_healthy.log")
    assert answer.healthy
    assert answer.failure_class == "benign.none"
    assert "ready to roll" in answer.root_line
    assert any("Skipping tactic" in symptom.line for symptom in answer.symptoms)


def test_the_same_text_is_fatal_when_it_ends_in_an_exception():
    answer = campaign("tactics_exhausted.log")
    assert answer.failure_class == "kernel.tile_smem"
    assert answer.root_line.startswith("RuntimeError: [TensorRT-LLM][ERROR]")


def test_not_enough_memory_asks_for_a_larger_fraction_once_for_all_ranks():
    answer = campaign("ep8_not_enough_memory_hidden_by_noise.log")
    assert answer.failure_class == "oom.kv_pool.startup"
    assert answer.ranks == ("TP1 EP1", "TP3 EP3", "TP6 EP6")
    first = answer.remedies[0]
    assert (first.target, first.direction) == ("--mem-fraction-static", "raise")
    assert first.value > 0.7788


def test_silent_hang_is_told_by_the_clock():
    answer = campaign("ep8_hang_during_load.log")
    assert answer.failure_class == "runtime.hang"
    assert answer.stage == "load"
    assert "12% Completed" in answer.root_line
    assert not answer.healthy


def test_compile_failure_of_piecewise_graphs():
    answer = campaign("piecewise_graph_blocked.log")
    assert answer.failure_class == "compile.dynamo"
    assert "--enable-piecewise-cuda-graph" in [remedy.target for remedy in answer.remedies]


def test_a_client_that_cannot_connect_blames_no_server():
    assert campaign("bench_client_only.log").failure_class == "client.error"


def test_a_settings_dump_is_never_an_error():
    dump = (FIXTURES / "campaign" / "ep8_memory_safe_healthy.log").read_text().splitlines()[0]
    assert "error_on_oom" in dump
    answer = diagnose(dump + "\n", alive=True)
    assert answer.failure_class == "runtime.hang"


def test_a_pool_that_leaves_nothing_for_the_sampler_is_made_smaller() -> None:
    answer = diagnose(FIXTURES / "real_logs" / "vllm-h200-fail-sampler-oom.log", engine="vllm")
    first = answer.remedies[0]
    assert (first.target, first.direction) == ("--gpu-memory-utilization", "lower")
    assert "0.995 -> 0.945" in first.change
