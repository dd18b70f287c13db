"""Settings in force and memory, from logs of real engines and from lines in their exact format."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeagent.memory.records import ConfigChange, ServerConfig
from moeagent.tools.engines.effective import (
    differences,
    effective_identity,
    from_command_line,
    in_force,
    same_value,
)
from moeagent.tools.engines.key_values import bracketed, key_values, split_top_level
from moeagent.tools.engines.llamacpp import LlamacppEngine
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.sglang import SglangEngine, server_args
from moeagent.tools.engines.vllm import VllmEngine

FIXTURES = Path(__file__).parents[2] / "fixtures" / "engines"
SGLANG, VLLM, LLAMACPP = SglangEngine(), VllmEngine(), LlamacppEngine()

SGLANG_LOG = (FIXTURES / "sglang-0.5.9-ep8.log").read_text()


def test_sglang_settings_in_force() -> None:
    effective = SGLANG.effective(None, SGLANG_LOG)
    assert effective["--ep-size"] == 8
    assert effective["--disable-shared-experts-fusion"] is True
    assert effective["--mem-fraction-static"] == 0.92
    assert effective["--context-length"] == 202752
    assert effective["--cuda-graph-bs"] == [1, 2, 4, 8]
    assert effective["--json-model-override-args"] == '{"a": "b, (c"}'
    assert effective["--fp4-gemm-backend"] == "flashinfer_cutlass"


def test_sglang_memory_is_that_of_the_rank_that_decides() -> None:
    assert SGLANG.memory(SGLANG_LOG) == {
        "free_before_load_gib": 93.6,
        "weights_gib": 59.5,
        "free_after_load_gib": 34.11,
        "kv_tokens": 517632,
        "kv_gib": 26.62,
        "graphs_gib": 1.25,
        "available_gib": 5.6,
    }


def test_the_newer_forms_of_the_same_lines() -> None:
    log = (FIXTURES / "sglang-0.5.23-start.log").read_text()
    assert SGLANG.effective(None, log)["--page-size"] == 64
    memory = SGLANG.memory(log)
    assert (memory["weights_gib"], memory["kv_tokens"], memory["kv_gib"]) == (21.5, 1000, 2.75)
    assert (memory["graphs_gib"], memory["available_gib"]) == (0.75, 8.75)


def test_the_endpoint_counts_more_than_the_line_and_an_adjustment_more_than_both() -> None:
    log = (
        "server_args=ServerArgs(tp_size=8, page_size=1)\n"
        "FlashMLA only supports a page_size of 64, change page_size to 64.\n"
    )
    info = {"tp_size": 4, "internal_states": [{"a": 1}], "version": "0.5.9"}
    effective = SGLANG.effective(info, log)
    assert (effective["--tp-size"], effective["--page-size"]) == (4, 64)


def test_a_log_that_was_cut_off_in_the_arguments() -> None:
    assert server_args("server_args=ServerArgs(tp_size=8, model_path='/mod") == {
        "tp_size": 8,
        "model_path": "'/mod",
    }
    assert server_args("nothing here") == {}


def test_a_real_vllm_log() -> None:
    log = (FIXTURES / "vllm-0.25.1-h200-healthy.log").read_text()
    effective = VLLM.effective(None, log)
    assert effective["--kv-cache-dtype"] == "fp8"
    assert effective["--max-num-batched-tokens"] == 8192
    assert effective["--tensor-parallel-size"] == 1
    assert effective["--enable-prefix-caching"] is True
    assert effective["--attention-backend"] == "FLASH_ATTN"
    assert effective["--moe-backend"] == "TRITON"
    assert effective["--max-model-len"] == 4096
    assert VLLM.memory(log) == {
        "weights_gib": 56.91,
        "kv_gib": 68.15,
        "kv_tokens": 1488704,
        "graphs_gib": 0.8,
        "graphs_estimate_gib": 0.64,
    }


def test_a_real_vllm_log_on_a_cpu() -> None:
    log = (FIXTURES / "vllm-0.32.0-cpu-healthy.log").read_text()
    effective = VLLM.effective(None, log)
    assert (effective["--max-num-seqs"], effective["--max-model-len"]) == (8, 512)
    assert (effective["--enforce-eager"], effective["--moe-backend"]) == (True, "CPU")
    assert VLLM.memory(log) == {"kv_gib": 1.0, "kv_tokens": 1048576}


@pytest.mark.parametrize(
    ("flag", "value", "line"),
    [
        (
            "--attention-backend",
            "FLASHINFER",
            "(Worker pid=9891) INFO [cpu.py:178] Cannot use AttentionBackendEnum.FLASHINFER backend on CPU.",
        ),
        ("--enable-expert-parallel", True, ""),
    ],
)
def test_what_vllm_accepts_and_leaves_aside_is_not_in_force(flag: str, value: str | bool, line: str) -> None:
    log = (FIXTURES / "vllm-0.32.0-cpu-healthy.log").read_text()
    before = ServerConfig(engine="vllm", flags={"--max-num-seqs": 8})
    after = before.apply(ConfigChange(set_flags={flag: value}))
    asked = log.replace(
        "non-default args: {", f"non-default args: {{'{flag[2:].replace('-', '_')}': {value!r}, "
    )
    effective = VLLM.effective(None, f"{asked}\n{line}\n")
    assert effective[flag] is None
    assert effective_identity(after, effective) == effective_identity(before, VLLM.effective(None, log))
    assert [d.flag for d in differences(after, effective)] == [flag]


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("vllm-0.32.0-cpu-healthy.log", VLLM),
        ("vllm-0.25.1-h200-healthy.log", VLLM),
        ("sglang-0.5.9-ep8.log", SGLANG),
    ],
)
def test_stages_are_seen_in_their_order(name: str, engine: SglangEngine | VllmEngine) -> None:
    log = (FIXTURES / name).read_text()
    found = [re.search(stage.pattern, log) for stage in engine.ready.stages]
    starts = [match.start() for match in found if match]
    assert len(starts) >= 4
    assert starts == sorted(starts)
    assert engine.ready.ready_log is not None
    assert re.search(engine.ready.ready_log, log)


def test_a_real_llamacpp_log() -> None:
    log = (FIXTURES / "llamacpp-healthy.log").read_text()
    assert LLAMACPP.effective(None, log)["--parallel"] == 8
    assert LLAMACPP.memory(log)["kv_tokens"] == 8 * 2048
    unified = "load_model: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'true'"
    assert LLAMACPP.memory(unified)["kv_tokens"] == 2048


@pytest.mark.parametrize("engine", [SGLANG, VLLM, LLAMACPP])
def test_an_empty_log_says_nothing(engine: SglangEngine | VllmEngine | LlamacppEngine) -> None:
    assert engine.effective(None, "") == {}
    assert engine.memory("") == {}


def test_requested_against_effective() -> None:
    config = ServerConfig(
        engine="sglang",
        flags={
            "--ep-size": 4,
            "--tp": 8,
            "--mem-fraction-static": 0.92,
            "--cuda-graph-bs": "1 2 4 8",
            "--nnodes": 1,
        },
    )
    found = differences(config, SGLANG.effective(None, SGLANG_LOG))
    assert [(d.flag, d.requested, d.effective) for d in found] == [("--ep-size", 4, 8)]


def test_a_change_that_did_not_take_effect_has_the_same_identity() -> None:
    facts = SGLANG.facts({}, EngineInstall(version="0.5.9"))
    parent = ServerConfig(engine="sglang", flags={"--tp-size": 8})
    unread = parent.apply(ConfigChange(set_flags={"--num-continuous-decode-steps": 4}))
    one = effective_identity(parent, {"--tp-size": 8, "--num-continuous-decode-steps": 1, "--port": 1}, facts)
    two = effective_identity(unread, {"--tp-size": 8, "--num-continuous-decode-steps": 4, "--port": 2}, facts)
    assert one == two
    overwritten = parent.apply(ConfigChange(set_flags={"--ep-size": 4}))
    forced = {"--tp-size": 8, "--ep-size": 8}
    assert effective_identity(overwritten, forced, facts) == effective_identity(
        parent.apply(ConfigChange(set_flags={"--ep-size": 8})), forced, facts
    )


def test_a_flag_that_the_engine_does_not_report_counts_as_requested() -> None:
    parent = ServerConfig(engine="llamacpp", flags={"--parallel": 1})
    child = parent.apply(ConfigChange(set_flags={"--ubatch-size": 256}))
    assert effective_identity(parent, {"--parallel": 1}) != effective_identity(child, {"--parallel": 1})


@pytest.mark.parametrize(
    ("requested", "effective", "same"),
    [
        (8, "8", True),
        (0.9, 0.90, True),
        (True, "true", True),
        ("flashinfer_cutlass", "FLASHINFER_CUTLASS", True),
        ("1 2", [1, 2], True),
        (8, None, False),
        (True, False, False),
        ("a", "b", False),
    ],
)
def test_values_are_equal_over_spellings(requested: object, effective: object, same: bool) -> None:
    assert same_value(requested, effective) is same


def test_the_parts_between_top_level_commas() -> None:
    assert split_top_level("a=1, b=[1, 2], c='x, y', d=<E.X: (1, 2)>, e={'k': 'v, w'}") == [
        "a=1", "b=[1, 2]", "c='x, y'", "d=<E.X: (1, 2)>", "e={'k': 'v, w'}",
    ]  # fmt: skip
    assert key_values("a=1, d=<E.X: 3>, 5, 'k': None") == {"a": 1, "d": "<E.X: 3>", "k": None}


@given(st.text(alphabet="ab=,'\"\\()[]{}<>: 1\n", max_size=60))
def test_no_text_can_break_the_reader(text: str) -> None:
    key_values(text)
    key_values(bracketed("(" + text, 0))
    SGLANG.effective(None, "server_args=ServerArgs(" + text)


OWN = ["--model-path", "/m", "--host", "127.0.0.1", "--port", "21000"]


@pytest.mark.parametrize(
    "front",
    [
        ["python3", "-m", "sglang.launch_server"],
        ["numactl", "--cpunodebind=0", "--", "/opt/venv/bin/python", "-m", "sglang.launch_server"],
        ["docker", "exec", "-e", "A=1", "box", "python3", "-m", "sglang.launch_server"],
    ],
)
def test_a_running_process_shows_what_arrived_at_it(front):
    words = [
        *front,
        *OWN,
        "--tp-size",
        "8",
        "--mem-fraction-static=0.9",
        "--disable-radix-cache",
        "--cuda-graph-bs",
        "1",
        "2",
    ]
    assert from_command_line("sglang", words) == {
        "--tp-size": 8, "--mem-fraction-static": 0.9, "--disable-radix-cache": True, "--cuda-graph-bs": "1 2",
    }  # fmt: skip


def test_values_that_look_like_flags_are_values():
    words = ["vllm", "serve", "/m", *OWN[2:], "--seed", "-1", "--hf-overrides", '{"a": -1}', "--x=--y"]
    assert from_command_line("vllm", words) == {"--seed": -1, "--hf-overrides": '{"a": -1}', "--x": "--y"}


def test_a_process_that_renamed_itself_shows_nothing():
    assert from_command_line("sglang", ["sglang::launch"]) == {}
    assert from_command_line("llamacpp", []) == {}


def test_the_engines_own_word_wins_over_the_command_line():
    log = "server_args=ServerArgs(max_running_requests=48, tp_size=8)"
    words = ["python3", *OWN, "--max-running-requests", "512", "--stream-interval", "4"]
    found = in_force(SGLANG, None, log, words)
    assert found == {"--max-running-requests": 48, "--stream-interval": 4, "--tp-size": 8}


@given(
    st.dictionaries(
        st.sampled_from(["--threads", "--parallel", "--cache-type-v", "--no-mmap", "--n-predict"]),
        st.just(True) | st.integers() | st.sampled_from(["q8_0", "a b", "0.5x"]),
    )
)
def test_what_is_asked_arrives(flags):
    """A launch command read back gives the flags that it was made from."""
    config = ServerConfig(engine="llamacpp", flags=flags)
    command = LLAMACPP.command(config, model="/m.gguf", port=1, install=EngineInstall())
    found = from_command_line("llamacpp", [str(word) for word in command.argv])
    assert found.keys() == flags.keys()
    assert all(same_value(value, found[name]) for name, value in flags.items())
