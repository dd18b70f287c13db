"""A machine, a model and an engine that nothing is known about: it is said, and the campaign goes on."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from e2e.command import moeagent, moeagent_json

from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView
from moeagent.tools.sim.environment import SimHost, sim_host_environment
from moeagent.tools.sim.hosting import MODEL_KEY

SETTINGS = """
model = "{model}"
[host]
target = "local"
folder = "{folder}"
[engine]
name = "sglang"
[baseline]
flags = {{ "--tp-size" = 8, "--mem-fraction-static" = 0.9, "--quantization" = "modelopt_fp4" }}
launches = 1
[workload]
input_len = 16
output_len = 8
ladder = [1, 8]
prompts_per_slot = 1.0
min_prompts = 2
[limits]
experiments = 1
launches = 3
[output_check]
enabled = false
"""


def rename_gpus(box: SimHost) -> None:
    """A card that no table has."""
    tool = box.bin_dir / "nvidia-smi"
    tool.rename(box.bin_dir / "real-smi")
    tool.write_text(
        '#!/bin/sh\nreal-smi "$@" | sed "s/NVIDIA RTX PRO 6000[A-Za-z ]*Edition/Mystery 9000/g"\n'
    )
    tool.chmod(0o755)


def reword_model(box: SimHost, **fields: Any) -> None:
    """Another config.json; the simulated engine does not read it."""
    path = Path(box.model_path) / "config.json"
    own = {name: value for name, value in json.loads(path.read_text()).items() if name == MODEL_KEY}
    path.write_text(json.dumps({**own, **fields}))


def hide_parser(box: SimHost) -> None:
    """An install whose parser cannot be imported, and whose --help fails."""
    site = Path(box.env["PYTHONPATH"]) / "sglang"
    (site / "srt" / "server_args.py").write_text("raise ImportError('no libcuda.so.1')\n")
    launcher = site / "launch_server.py"
    launcher.write_text(f"import sys\nif '--help' in sys.argv:\n    sys.exit(3)\n{launcher.read_text()}")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_campaign_goes_on_and_says_what_it_does_not_know(tmp_path: Path) -> None:
    box = sim_host_environment(tmp_path / "box", startup_scale=2000.0, serving_scale=4.0)
    rename_gpus(box)
    reword_model(box, architectures=["Weird"], num_hidden_layers=78)
    hide_parser(box)
    (tmp_path / "moeagent.toml").write_text(SETTINGS.format(model=box.model_path, folder=tmp_path / "remote"))
    env = {**box.env, "PATH": f"{box.bin_dir}:{os.environ['PATH']}"}
    moeagent(tmp_path, "run", "--run-id", "blind", **env)
    told = moeagent_json(tmp_path, "log", "blind")
    assert told["status"] == "finished"
    assert told["host"]["gpus"][0]["name"] == "Mystery 9000"
    [hypothesis] = told["hypotheses"]
    assert hypothesis["verdict"]
    facts = RunView.read(RunFolder(tmp_path / "runs" / "blind")).ledger.facts
    assert facts is not None
    assert facts.knobs_source.startswith("catalogue 0.5.9")
    said = " ".join(facts.problems)
    assert "did not show its own flags: flags are checked against the catalogue" in said
    assert "config.json lacks hidden_size" in said
    assert "speed cannot be predicted: Mystery 9000 is not in the table of GPUs" in said
