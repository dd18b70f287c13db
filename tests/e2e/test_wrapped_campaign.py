"""A campaign whose server runs in a container: killed with its client on the way, resumed, nothing left."""

import os
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from e2e.command import kill_hard, kinds, moeagent, moeagent_json, start, tagged_processes, wait_for
from parts.containers import Runtime, runtime
from parts.llamacpp import tiny_model

SETTINGS = """
model = "{model}"
[host]
target = "local"
folder = "{folder}/remote"
[engine]
name = "llamacpp"
command = ["{python}", "-m", "moeagent.tools.engines.llama_serve"]
[engine.wrapper]
command = ["{docker}", "run", "-v", "/models:/models", "image"]
[baseline]
flags = {{ "-np" = 2, "-c" = 2048 }}
launches = 1
[workload]
input_len = 16
output_len = 8
ladder = [1]
prompts_per_slot = 1.0
min_prompts = 2
[output_check]
enabled = false
[limits]
experiments = 1
launches = 2
[[idea]]
statement = "Four slots"
flags = {{ "-np" = 4 }}
"""

pytestmark = [pytest.mark.part("llamacpp"), pytest.mark.slow]


@pytest.fixture
def docker(tmp_path: Path) -> Iterator[Runtime]:
    with runtime(tmp_path / "runtime") as made:
        yield made


def write_settings(folder: Path, docker: Runtime) -> None:
    text = SETTINGS.format(
        model=tiny_model(folder), folder=folder, python=sys.executable, docker=docker.program
    )
    (folder / "moeagent.toml").write_text(text)


def test_a_plan_shows_the_whole_command_of_the_wrapper(tmp_path: Path, docker: Runtime) -> None:
    write_settings(tmp_path, docker)
    told = moeagent_json(tmp_path, "plan", "--ideas", "1")
    baseline = told["launches"][0]
    assert "docker run --label moeagent.tag=RUN/LAUNCH" in baseline["start"]
    assert "--rm --network=host" in baseline["start"]
    assert "docker stop --time 20 ID" in baseline["stop"]
    assert docker.containers() == []


def test_killed_with_its_client_and_resumed_nothing_is_left(tmp_path: Path, docker: Runtime) -> None:
    write_settings(tmp_path, docker)
    run = f"boxed-{secrets.token_hex(3)}"
    process = start(tmp_path, "run", "--run-id", run)
    wait_for(lambda: "load" in kinds(tmp_path, run) or process.poll() is not None, "the first load", 120)
    kill_hard(process)
    assert len(docker.running()) == 1
    for pid in tagged_processes(f"{run}/"):
        with suppress(FileNotFoundError, ProcessLookupError):  # its parent may have taken it along
            if b"docker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
    assert len(docker.running()) == 1, "the container outlives its client"
    moeagent(tmp_path, "resume", run)
    log = moeagent_json(tmp_path, "log", run)
    assert log["status"] == "finished"
    assert [h["statement"] for h in log["hypotheses"]] == ["Four slots"]
    launch = log["hypotheses"][0]["launches"][0]
    assert launch["outcome"] == "completed"
    assert f"--label moeagent.tag={run}/{launch['id']}" in launch["command"]
    assert docker.containers() == []
    assert not tagged_processes(f"{run}/")
    assert moeagent_json(tmp_path, "replay", run)["same"]


def test_a_wrapper_that_nobody_declared_is_refused_before_a_folder_is_made(
    tmp_path: Path, docker: Runtime
) -> None:
    write_settings(tmp_path, docker)
    text = (tmp_path / "moeagent.toml").read_text()
    for given, told in (
        ('["kubectl", "exec", "pod"]', "lacks find, stop, kill"),
        ('["docker", "run", "-d", "image"]', "the client would end at once"),
    ):
        wrapped = text.replace(f'["{docker.program}", "run", "-v", "/models:/models", "image"]', given)
        (tmp_path / "moeagent.toml").write_text(wrapped)
        assert told in moeagent(tmp_path, "run", code=2).stderr
    plain = text.split("[engine.wrapper]")[0].replace('command = ["', 'command = ["docker", "exec", "box", "')
    (tmp_path / "moeagent.toml").write_text(plain)
    assert "[engine.wrapper]" in moeagent(tmp_path, "run", code=2).stderr
    assert not (tmp_path / "runs").exists()
