"""A real vLLM without a GPU: the known gain is proven, each crash is diagnosed, nothing else is claimed.

The engine, its flags, its logs and its failures are those of a GPU machine; the model has random weights.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from e2e.command import moeagent, moeagent_json, tagged_processes
from parts.sshd import Sshd
from parts.vllm import ENVIRONMENT, PROGRAM, write_model

SETTINGS = """
model = "{model}"
[host]
{host}
[engine]
name = "vllm"
command = ["{program}", "serve"]
[engine.env]
{env}
[baseline]
launches = {baseline}
[baseline.flags]
"--load-format" = "dummy"
"--dtype" = "float32"
"--max-model-len" = 1024
"--max-num-seqs" = {seqs}
"--enforce-eager" = true
[workload]
input_len = 32
output_len = 32
ladder = [1, 16]
prompts_per_slot = 3
min_prompts = 6
body = {body}
[space]
pin = ["--load-format", "--dtype"]
[output_check]
enabled = false
[limits]
experiments = {experiments}
launches = {launches}
"""
LOCAL = """
[[idea]]
statement = "Sixteen streams at once in place of one"
flags = { "--max-num-seqs" = 16 }
[[idea]]
statement = "Steps of 64 tokens; a prompt is cut where a step ends, of which a seeded request on a CPU dies"
flags = { "--max-num-batched-tokens" = 64 }
[[idea]]
statement = "A cache that no RAM holds"
env = { VLLM_CPU_KVCACHE_SPACE = "4000" }
[[idea]]
statement = "The attention of another device, which is accepted and left aside"
flags = { "--attention-backend" = "FLASHINFER" }
"""
REMOTE = """
[[idea]]
statement = "A cache that does not hold one sequence"
flags = { "--num-gpu-blocks-override" = 6 }
[[idea]]
statement = "Steps of 64 tokens: prompts are cut, which nobody dies of without a seed"
flags = { "--max-num-batched-tokens" = 64 }
[[idea]]
statement = "Experts spread over one worker, which changes nothing"
flags = { "--enable-expert-parallel" = true }
[[idea]]
statement = "Compiled"
without_flags = ["--enforce-eager"]
"""
pytestmark = [pytest.mark.part("vllm"), pytest.mark.slow, pytest.mark.timeout(2400)]


@pytest.fixture(autouse=True)
def when_time_allows(full: bool) -> None:
    if not full and os.environ.get("REQUIRE_ALL") != "1":
        pytest.skip("campaigns of five minutes each: REQUIRE_ALL=1 make test")


@pytest.fixture
def short() -> Iterator[str]:
    """vLLM's sockets lie in the temporary folder, and their paths may have 107 characters at most."""
    with TemporaryDirectory(prefix="v", ignore_cleanup_errors=True) as folder:
        yield folder


def write_settings(folder: Path, short: str, ideas: str, **values: Any) -> None:
    # A local server inherits the tests' own strictness about warnings, which vLLM does not meet.
    variables = {**ENVIRONMENT, "PYTHONWARNINGS": "default", "TMPDIR": short}
    env = "\n".join(f'{name} = "{value}"' for name, value in variables.items())
    model = write_model(folder / "model")
    text = SETTINGS.format(model=model, program=PROGRAM, env=env, **values)
    (folder / "moeagent.toml").write_text(text + ideas)


def campaign(folder: Path) -> dict[str, dict[str, Any]]:
    """Run to the end; the hypotheses by id. Nothing is left running, and the tape replays."""
    moeagent(folder, "run", "--run-id", "vllm", "--goal", "max-throughput", timeout_s=2300)
    assert not tagged_processes("vllm/")
    moeagent(folder, "replay", "vllm")
    log = moeagent_json(folder, "log", "vllm")
    assert log["status"] == "finished"
    assert log["host"]["gpus"] == []
    found: dict[str, dict[str, Any]] = {h["id"]: h for h in log["hypotheses"]}
    return found


def failures(hypothesis: dict[str, Any]) -> list[str]:
    """Classes of its launches that failed, in order."""
    told = (launch["diagnosis"] for launch in hypothesis["launches"])
    return [diagnosis["class"] for diagnosis in told if diagnosis]


def test_the_gain_is_proven_and_the_crashes_are_named(tmp_path: Path, short: str) -> None:
    host = f'target = "local"\nfolder = "{tmp_path}/host"'
    body = "{ temperature = 0.8, seed = 7 }"
    write_settings(
        tmp_path, short, LOCAL, host=host, baseline=2, seqs=1, body=body, experiments=4, launches=14
    )
    found = campaign(tmp_path)
    gain, seeded, too_large, aside = (found[f"H{n}"] for n in range(1, 5))
    kinds = {h["id"]: h["verdict"]["kind"] for h in found.values()}

    assert kinds.pop("H1") == "improved", gain["verdict"]["reason"]
    assert gain["verdict"]["goal_effect"]["low"] > 0
    assert kinds == {"H2": "regressed", "H3": "blocked", "H4": "no-op"}

    assert failures(seeded) == ["runtime.engine_bug"]
    died = seeded["launches"][0]
    assert "CPU Generator does not use offset" in died["diagnosis"]["root_line"]
    assert died["outcome"] == "died-serving"
    assert died["boundary"] == {"last_good": 1, "first_failed": 16}

    assert failures(too_large) == ["host.ram"]
    assert len(aside["launches"]) == 1


@pytest.mark.part("sshd")
def test_the_same_engine_over_ssh(tmp_path: Path, short: str) -> None:
    server = Sshd(tmp_path / "sshd").start()
    (tmp_path / "ssh_config").write_text(
        f"Host box\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.user_key}\n"
        f" UserKnownHostsFile {server.home}/.ssh/known_hosts\n"
    )
    host = f'target = "box"\nssh_config = "{tmp_path}/ssh_config"\nfolder = "{tmp_path}/remote"'
    write_settings(
        tmp_path, short, REMOTE, host=host, baseline=1, seqs=16, body="{}", experiments=4, launches=8
    )
    try:
        found = campaign(tmp_path)
    finally:
        server.stop()
    too_small, shorter_steps, experts, compiled = (found[f"H{n}"] for n in range(1, 5))
    assert "improved" not in [h["verdict"]["kind"] for h in found.values()]

    assert failures(too_small) == ["oom.kv_pool.startup"]
    assert too_small["pivots"][0]["remedy"].startswith("--max-model-len 1024 -> ")
    assert too_small["launches"][-1]["outcome"] == "completed"

    assert failures(shorter_steps) == failures(compiled) == []
    assert experts["verdict"]["kind"] == "no-op"
