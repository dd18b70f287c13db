"""Engine installs as a knob: a second install is tried as an idea, one that does not answer is told."""

import sys
from pathlib import Path

import pytest
from e2e.command import moeagent, moeagent_json
from parts.llamacpp import tiny_model

SETTINGS = """
model = "{model}"
[host]
target = "local"
[engine]
name = "llamacpp"
command = ["{python}", "-m", "moeagent.tools.engines.llama_serve"]
[[engine.install]]
name = "passive"
command = ["env", "OMP_WAIT_POLICY=passive", "{python}", "-m", "moeagent.tools.engines.llama_serve"]
env = {{ GGML_NO_BACKTRACE = "1" }}
[[engine.install]]
name = "gone"
command = ["{folder}/no-such-venv/bin/llama-server"]
[baseline]
flags = {{ "-np" = 1, "-c" = 1024 }}
launches = 2
[workload]
input_len = 8
output_len = 8
ladder = [1]
prompts_per_slot = 2.0
[output_check]
batch_sizes = [1]
prompts = 1
max_tokens = 4
[limits]
experiments = 1
launches = 4
"""


@pytest.mark.part("llamacpp")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_second_install_is_tried_and_a_dead_one_is_told(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    text = SETTINGS.format(model=model, folder=tmp_path, python=sys.executable)
    (tmp_path / "moeagent.toml").write_text(text)
    moeagent(tmp_path, "run", "--run-id", "two")
    told = moeagent_json(tmp_path, "log", "two")
    assert any(note["about"] == "install gone" for note in told["notes"])
    [hypothesis] = told["hypotheses"]
    assert hypothesis["change"]["install"] == "passive"
    assert hypothesis["source"] == "user"
    assert hypothesis["verdict"] is not None
    launch = hypothesis["launches"][0]
    assert launch["outcome"] == "completed"
    assert launch["config"]["install"] == "passive"
    assert launch["command"].startswith("export GGML_NO_BACKTRACE=1 && env OMP_WAIT_POLICY=passive ")
    assert launch["effective"]["--ctx-size"] == 1024
    script = moeagent(tmp_path, "export", "two", "--experiment", hypothesis["id"]).stdout
    assert f"exec env OMP_WAIT_POLICY=passive {sys.executable} -m" in script
    moeagent(tmp_path, "replay", "two")


def test_an_idea_for_an_install_that_is_not_listed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "moeagent.toml").write_text('[host]\ntarget = "sim"\n[[idea]]\ninstall = "nightly"\n')
    done = moeagent(tmp_path, "run", code=2)
    assert "'nightly': [[engine.install]] lists none" in done.stderr
