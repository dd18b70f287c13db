"""The real engine over real SSH: each verdict agrees with an independent measurement."""

import sys
from pathlib import Path
from typing import Any

import pytest
from e2e.command import moeagent, moeagent_json, tagged_processes
from e2e.llama_box import LLAMA_BOX
from parts.llamacpp import llama_server, tiny_model
from parts.sshd import Sshd

from moeagent.memory.records import FlagValue
from moeagent.tools.load.runner import run_rung
from moeagent.tools.load.spec import RandomPrompts, RungSpec, Target

SETTINGS = (
    LLAMA_BOX
    + """[baseline]
flags = {{ "-np" = 1, "-c" = 4096 }}
[workload]
input_len = 32
output_len = 32
ladder = [1, 8]
prompts_per_slot = 8
min_prompts = 16
[output_check]
batch_sizes = [1]
prompts = 2
max_tokens = 8
[limits]
experiments = {experiments}
launches = {launches}
[[idea]]
statement = "Eight slots serve eight streams at once"
flags = {{ "-np" = 8 }}
"""
)

pytestmark = [
    pytest.mark.part("sshd"),
    pytest.mark.part("llamacpp"),
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.timeout(600),
]


def measured_apart(model: Path, flags: dict[str, FlagValue]) -> float:
    """Output tok/s at concurrency 8 of a server that moeagent did not start, best of three."""
    with llama_server(model, flags) as server:
        target = Target(base_url=f"http://127.0.0.1:{server.port}", api="openai-completions")
        spec = RungSpec(
            concurrency=8, requests=24, output_len=24, random=RandomPrompts(words=16), seed="apart"
        )
        rungs = [run_rung(target, spec).rung for _ in range(3)]
    return max(r.output_tok_s or 0.0 for r in rungs)


@pytest.mark.parametrize(("load_from", "experiments", "launches"), [("controller", 2, 8), ("host", 1, 4)])
def test_campaign_over_ssh_and_independent_measurement(
    tmp_path: Path, load_from: str, experiments: int, launches: int
) -> None:
    model = tiny_model(tmp_path)
    server = Sshd(tmp_path / "sshd").start()
    (tmp_path / "ssh_config").write_text(
        f"Host box\n HostName 127.0.0.1\n Port {server.port}\n IdentityFile {server.user_key}\n"
        f" UserKnownHostsFile {server.home}/.ssh/known_hosts\n"
    )
    text = SETTINGS.format(
        load_from=load_from,
        experiments=experiments,
        launches=launches,
        model=model,
        folder=tmp_path,
        python=sys.executable,
    )
    (tmp_path / "moeagent.toml").write_text(text)
    try:
        moeagent(tmp_path, "run", "--run-id", "ssh", timeout_s=420)
    finally:
        server.stop()
    log = moeagent_json(tmp_path, "log", "ssh")
    assert log["simulated"] is False
    assert log["status"] == "finished"
    assert not tagged_processes("ssh/")
    moeagent(tmp_path, "replay", "ssh")
    baseline = measured_apart(model, {"-np": 1, "-c": 4096})
    judged = [h for h in log["hypotheses"] if h["verdict"]["kind"] in ("improved", "regressed", "neutral")]
    for hypothesis in judged:
        check_agreement(
            hypothesis, measured_apart(model, hypothesis["launches"][-1]["config"]["flags"]) / baseline
        )


def check_agreement(hypothesis: dict[str, Any], ratio: float) -> None:
    """The direction that the verdict claims is the direction that an independent client sees."""
    kind, told = hypothesis["verdict"]["kind"], hypothesis["verdict"]["reason"]
    if kind == "improved":
        assert ratio > 1.0, told
    elif kind == "regressed":
        assert ratio < 1.05, told
    else:
        assert ratio < 1.25, told
