"""A rung in which the engine compiled kernels is known by the engine's own words, on a real shell."""

import time
from pathlib import Path

import pytest

from moeagent.memory.records import ClientHealth, Rung
from moeagent.tools.engines.log_lines import compiling_patterns
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.load.compiling import compiled_since, length_before, with_compilation
from moeagent.tools.load.sampling import GpuSampler

VLLM = (
    "(EngineCore pid=1386) WARNING 11-29 23:30:12 [jit_monitor.py:129] Triton kernel JIT compilation during "
    "inference: fused_moe_kernel. This causes a latency spike; consider extending warmup to cover this "
    "shape/config.\n"
)
"""vLLM 0.25.1 on one H200, in the first wave of a rung at concurrency 32."""
SGLANG = "[2026-01-01 00:00:00] Entering DeepGEMM JIT Single Kernel Compile session. And it will makes inf\n"


def test_the_length_before_a_moment_is_that_of_the_last_look_surely_before_it() -> None:
    looks = "log 100 10\n2026/01/01 00:00:00.000, 0, 99\nlog 101 20\nlog 102 30\n"
    assert [length_before(looks, at) for at in (100.5, 101, 102.9, 103.1)] == [None, 10, 20, 30]


def test_lines_of_the_measured_window_count_and_earlier_ones_do_not(gpu_host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "launch"
    folder.mkdir()
    log = folder / "server.log"
    log.write_text(VLLM)
    with GpuSampler(gpu_host).during(str(folder), limit_s=60) as samples:
        time.sleep(3.5)
    length = length_before(samples.text, time.time() + samples.ahead_s)
    assert length == len(VLLM)

    patterns = compiling_patterns("vllm")
    assert compiled_since(gpu_host, str(log), length, patterns) == ""
    with log.open("a") as more:
        more.write(
            '(APIServer pid=643) INFO:     127.0.0.1:51946 - "POST /v1/completions HTTP/1.1" 200 OK\n' + VLLM
        )
    said = compiled_since(gpu_host, str(log), length, patterns)
    assert said == "JIT compilation during inference: fused_moe_kernel."


@pytest.mark.parametrize(("engine", "line"), [("vllm", VLLM), ("sglang", SGLANG), ("llamacpp", "")])
def test_each_engine_has_its_words(gpu_host: Host, tmp_path: Path, engine: str, line: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(line)
    found = compiled_since(gpu_host, str(log), 0, compiling_patterns(engine))
    assert bool(found) == bool(line)
    assert found in line


def test_such_a_rung_is_measured_badly_for_throughput_too() -> None:
    client = ClientHealth(cpu_s=1.0, loop_lag_ms=0.1, valid=True)
    rung = Rung(
        concurrency=32,
        completed=128,
        failed=0,
        duration_s=9.4,
        output_tok_s=1751.5,
        total_tok_s=None,
        client=client,
    )
    assert with_compilation(rung, "") == rung
    spoilt = with_compilation(rung, "JIT compilation during inference: fused_moe_kernel.")
    assert "fused_moe_kernel" in spoilt.throughput_invalid
