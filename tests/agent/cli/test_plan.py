"""`moeagent plan` tells what would run and runs none of it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from e2e.command import tagged_processes
from parts.sshd import Sshd
from typer.testing import CliRunner, Result

from moeagent.agent.cli.plan import command
from moeagent.memory.errors import InputError
from moeagent.tools.engines.tiny_moe import write_tiny_moe

POLICY = """
[[rule]]
action = "deny"
flags = {"--kv-cache-dtype" = "fp8*"}
reason = "accuracy is not ours to trade"
[[rule]]
action = "ask"
env = {"NCCL_*" = "*"}
"""
IDEAS = """
[[idea]]
statement = "free the disk"
flags = {"--delete-ckpt-after-loading" = true}
[[idea]]
statement = "a smaller cache"
flags = {"--kv-cache-dtype" = "fp8_e4m3"}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No moeagent.toml of the developer is read, and what is written is seen."""
    monkeypatch.chdir(tmp_path)


def plan(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments))


def planned(*arguments: str) -> Any:
    shown = plan(*arguments, "--json")
    assert shown.exit_code == 0, shown.exception or shown.output
    return json.loads(shown.stdout)


def test_the_simulated_machine_is_surveyed_and_nothing_is_launched(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "ideas.toml").write_text(IDEAS)
    asked = ("--approve", "risky", "--policy", "policy.toml", "--try", "ideas.toml", "--ideas", "4")
    told = planned("--host", "sim", *asked, "--limit", "gpu_hours=100")
    assert {probe["name"] for probe in told["survey"]} > {"gpus", "model-config", "engine-parser"}
    assert told["simulated"]
    assert told["surveyed"]
    baseline, denied, ruled_out, *others = told["launches"]
    assert "sglang.launch_server" in baseline["start"]
    assert "--max-running-requests 2048" in baseline["start"]
    assert "moeagent bench" in baseline["load"]
    assert "SIGTERM" in baseline["stop"]
    assert baseline["memory"].startswith("tight")
    assert baseline["tok_s"]["1024"] > 0
    assert (baseline["basis"], baseline["gpu_hours"] > 0) == ("predicted", True)
    assert told["minutes"] > 3 * baseline["minutes"]
    assert "deletes the model's folder" in denied["preflight"]
    assert (denied["start"], denied["approval"]["action"]) == ("", "deny")
    assert ruled_out["approval"]["action"] == "deny"
    assert ruled_out["approval"]["reason"] == "accuracy is not ours to trade"
    assert len(others) == 2
    assert all(idea["source"] == "playbook" and idea["predicted"] for idea in others)
    assert not tagged_processes("plan/")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ideas.toml", "policy.toml"]


def test_people_read_whole_commands_and_the_total() -> None:
    shown = plan("--host", "sim", "--ideas", "1")
    assert shown.exit_code == 0, shown.exception
    (start,) = [line for line in shown.output.splitlines() if "start " in line][:1]
    assert start.endswith("--tp-size 8")
    assert "allow by --approve never" in shown.output
    assert "Nothing was launched." in shown.output


def test_a_limit_below_the_first_launch_is_told() -> None:
    told = planned("--host", "sim", "--ideas", "0", "--limit", "gpu_hours=0.5")
    assert "0.5 GPU-hours would be passed" in told["ended_before"]
    assert "the next launch" in plan("--host", "sim", "--ideas", "0", "--limit", "gpu_hours=0.5").output


def test_offline_asks_no_host_and_predicts_nothing() -> None:
    told = planned(
        "--host", "nobody@127.0.0.1:1", "--offline", "--engine", "sglang", "--model", "/models/GLM-5",
        "--flag", "--tp-size 8", "--env", "NCCL_MIN_NCHANNELS=8", "--ideas", "2",
    )  # fmt: skip
    assert not told["surveyed"]
    start = told["launches"][0]["start"]
    assert start.startswith("export NCCL_MIN_NCHANNELS=8 && python3 -m sglang.launch_server")
    assert told["launches"][0]["basis"] == "unknown"
    assert told["launches"][0]["memory"] == ""


def test_what_a_run_would_refuse_is_refused() -> None:
    shown = plan("--host", "sim", "--flag", "--tp-sizee 8")
    assert isinstance(shown.exception, InputError)
    assert "--tp-size" in str(shown.exception)


@pytest.mark.part("llamacpp")
@pytest.mark.part("sshd")
def test_over_ssh_only_the_survey_runs_on_the_host(tmp_path: Path) -> None:
    model = write_tiny_moe(tmp_path / "tiny.gguf")
    server = Sshd(tmp_path / "sshd").start()
    (tmp_path / "ssh_config").write_text(
        f"Host box\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.user_key}\n"
        f" UserKnownHostsFile {server.home}/.ssh/known_hosts\n"
    )
    words = f'["{sys.executable}", "-m", "moeagent.tools.engines.llama_serve"]'
    (tmp_path / "moeagent.toml").write_text(
        f'[host]\ntarget = "box"\nssh_config = "ssh_config"\nfolder = "{tmp_path}/remote"\n'
        f"[engine]\ncommand = {words}\n"
    )
    try:
        told = planned("--engine", "llamacpp", "--model", str(model), "--ideas", "2")
    finally:
        server.stop()
    assert "llama_serve" in told["launches"][0]["start"]
    assert told["launches"][0]["preflight"] == ""
    assert not tagged_processes("plan/")
    assert not (tmp_path / "remote").exists()
