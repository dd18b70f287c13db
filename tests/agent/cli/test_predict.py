"""`moeagent predict` as a user calls it."""

import json
from pathlib import Path
from subprocess import CompletedProcess, run
from sys import executable

import pytest
from fixtures.predict.shapes import MODELS
from parts.llamacpp import tiny_model

GLM = str(MODELS / "GLM-5.1-NVFP4.json")
BASE = (
    "--gpu",
    "8x RTX PRO 6000",
    "--model-config",
    GLM,
    "--flag",
    "--tp-size 8",
    "--flag",
    "--mem-fraction-static 0.92",
)


def moeagent(*words: str) -> CompletedProcess[str]:
    return run(
        [executable, "-m", "moeagent.agent", "predict", *words], capture_output=True, text=True, timeout=60
    )


def test_a_prediction_without_gpu_or_host():
    found = moeagent(*BASE, "--concurrency", "1,64")
    assert found.returncode == 0, found.stderr
    for words in (
        "routed experts",
        "Verdict: tight",
        "Limit at 64",
        "Risk of death",
        "Tile NVFP4 128x256x128",
    ):
        assert words in found.stdout
    assert max(len(line) for line in found.stdout.splitlines() if "(" in line and ")-" not in line) < 300


def test_two_configurations_as_json():
    found = moeagent(
        *BASE, "--against", "--moe-a2a-backend flashinfer", "--against", "NCCL_MIN_NCHANNELS=8", "--json"
    )
    answer = json.loads(found.stdout)
    assert answer["first"]["prediction"]["memory"]["verdict"] == "tight"
    assert answer["second"]["config"]["env"] == {"NCCL_MIN_NCHANNELS": "8"}
    assert [e["concurrency"] for e in answer["effects"]] == [1, 10, 256, 1024]
    rung = answer["first"]["prediction"]["rungs"][0]
    assert rung["output_tok_s"]["low"] < rung["output_tok_s"]["value"] < rung["output_tok_s"]["high"]
    assert rung["limit"]


def test_a_flag_can_be_dropped_in_the_comparison():
    answer = json.loads(moeagent(*BASE, "--against", "no --mem-fraction-static", "--json").stdout)
    assert "--mem-fraction-static" not in answer["second"]["config"]["flags"]


def test_an_unknown_architecture_is_stated(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"architectures": ["Weird"], "hidden_size": 8}')
    found = moeagent("--gpu", "8x H200", "--model-config", str(tmp_path))
    assert found.returncode == 0
    assert "config.json lacks num_hidden_layers" in found.stdout


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"architectures": ["Weird"]}, "config.json lacks num_hidden_layers, hidden_size"),
        ({"architectures": ["Qwen3MoeForCausalLM"], "num_experts": 8}, "config.json lacks"),
        ({}, "the model"),
    ],
)
def test_what_a_config_lacks_is_stated_and_flags_are_checked_all_the_same(tmp_path: Path, config, part):
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = moeagent(
        "--gpu", "8x H200", "--model-config", str(tmp_path), "--flag", "--mem-fractoin-static 0.9"
    )
    assert found.returncode == 0
    assert part in found.stdout
    assert "cannot be predicted" in found.stdout
    assert "Cannot start: sglang" in found.stdout
    assert "did you mean --mem-fraction-static?" in found.stdout


def test_a_gpu_that_is_not_in_the_table_has_memory_but_no_speed():
    found = moeagent("--gpu", "4x Foo 96GB", "--model-config", GLM, "--flag", "--tp 4", "--json")
    answer = json.loads(found.stdout)["first"]
    assert answer["prediction"]["memory"]["verdict"]
    assert answer["prediction"]["rungs"] == []
    assert any("not in the table of GPUs" in problem for problem in answer["prediction"]["problems"])
    assert answer["config"]["flags"] == {"--tp-size": 4}


def test_an_engine_without_a_readable_parser_is_checked_by_the_catalogue(tmp_path: Path):
    """vLLM is not installed where this runs: nobody says which version it would be."""
    (tmp_path / "config.json").write_text(Path(GLM).read_text())
    words = ("--host", "local", "--model", str(tmp_path), "--engine", "vllm", "--flag", "--no-such-flag 1")
    answer = json.loads(moeagent(*words, "--json").stdout)
    assert "vllm (version unknown), catalogue" in answer["flags_checked"]
    assert "has no flag --no-such-flag" in answer["first"]["engine_refuses"][0]


def test_flags_are_those_of_the_version_that_is_named():
    old = json.loads(
        moeagent(*BASE, "--flag", "--cuda-graph-max-bs 256", "--engine-version", "0.5.9", "--json").stdout
    )
    new = json.loads(
        moeagent(*BASE, "--flag", "--cuda-graph-max-bs 256", "--engine-version", "99", "--json").stdout
    )
    assert old["first"]["engine_refuses"] == []
    assert "--cuda-graph-max-bs-decode" in new["first"]["engine_refuses"][0]
    assert new["flags_checked"].startswith("sglang 99, catalogue 0.5")


def test_rules_about_model_and_gpu_are_asked_too():
    words = (*BASE, "--flag", "--kv-cache-dtype fp4_e2m1", "--flag", "--num-continuous-decode-steps 4")
    found = moeagent(*words, "--engine-version", "0.5.9")
    assert "Cannot start: --kv-cache-dtype=fp4_e2m1: sparse attention" in found.stdout
    assert "Remark: --num-continuous-decode-steps is accepted and read by nothing" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--gpu", "8x Foo", "--model-config", GLM), "not in the table"),
        (("--gpu", "8x H200"), "--model-config"),
        (("--model-config", GLM), "--gpu"),
        ((*BASE, "--concurrency", "0"), "positive numbers"),
        ((*BASE, "--env", "X"), "NAME=VALUE"),
        ((*BASE, "--flag", "--ep-size 8 --dp-size 8"), "more than one flag"),
        ((*BASE, "--flag", "--disable-radix-cache --enable-mixed-chunk"), "more than one flag"),
        ((*BASE, "--engine", "lmdeploy"), "Known engines: sglang, vllm, llamacpp"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words, message):
    found = moeagent(*words)
    assert found.returncode == 2
    assert message in found.stderr
    assert "Traceback" not in found.stderr


def test_a_file_that_is_no_json(tmp_path: Path):
    (tmp_path / "config.json").write_text("not json")
    found = moeagent("--gpu", "H200", "--model-config", str(tmp_path))
    assert found.returncode == 2
    assert "cannot be read as JSON" in found.stderr


@pytest.mark.part("llamacpp")
def test_a_surveyed_host_with_a_real_gguf_file(tmp_path: Path):
    model = tiny_model(tmp_path)
    words = (
        "--host",
        "local",
        "--model",
        str(model),
        "--engine",
        "llamacpp",
        "--flag",
        "-np 8",
        "--flag",
        "-c 4096",
    )
    answer = json.loads(moeagent(*words, "--input-len", "64", "--concurrency", "1,8", "--json").stdout)
    assert answer["machine"].endswith("GiB RAM")
    assert answer["first"]["prediction"]["memory"]["verdict"] == "fits"
    assert [r["running"] for r in answer["first"]["prediction"]["rungs"]] == [1, 8]
