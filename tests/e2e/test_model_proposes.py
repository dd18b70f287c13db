"""A language model at a real local endpoint proposes; when it is down the playbook takes over visibly."""

import json
from pathlib import Path

from e2e.command import moeagent, moeagent_json, tape_lines
from e2e.small_run import settings
from parts.llamacpp import free_port

from moeagent.tools.llm.scripted import ScriptedEndpoint

READY = json.dumps({"ready": True})


def idea(flag: str, value: str) -> str:
    return json.dumps(
        {
            "action": "propose",
            "statement": f"{flag} {value} helps, says the model",
            "reason": "scheduling binds",
            "category": "scheduling",
            "set": [f"{flag} {value}"],
            "predicted": [{"concurrency": 8, "effect": 0.05, "low": 0.0, "high": 0.1}],
            "refuted_by": "no gain at 8",
        }
    )


def test_the_hypotheses_are_the_models(tmp_path: Path) -> None:
    settings(tmp_path)
    steps = [READY, idea("--chunked-prefill-size", "4096"), idea("--schedule-conservativeness", "0.5")]
    with ScriptedEndpoint(steps) as endpoint:
        moeagent(tmp_path, "run", "--run-id", "model", "--llm", endpoint.base_url, "--llm-model", "scripted")
    log = moeagent_json(tmp_path, "log", "model")
    assert [h["source"] for h in log["hypotheses"]] == ["model", "model"]
    assert log["hypotheses"][0]["change"]["set_flags"] == {"--chunked-prefill-size": 4096}
    assert moeagent_json(tmp_path, "replay", "model")["same"], "a run with a model replays without one"
    assert moeagent_json(tmp_path, "replay", "model", "--rethink")["counts"]["differs"] == 0


def test_an_endpoint_that_is_down_costs_at_most_five_calls(tmp_path: Path) -> None:
    settings(tmp_path)
    url = f"http://127.0.0.1:{free_port()}/v1"
    done = moeagent(tmp_path, "run", "--run-id", "down", "--llm", url)
    asked = [
        line["response"]["attempts"]
        for line in tape_lines(tmp_path, "down")
        if line["type"] == "response" and "attempts" in line.get("response", {})
    ]
    assert 1 <= sum(asked) <= 5
    assert "the playbook has the turn" in done.stdout
    log = moeagent_json(tmp_path, "log", "down")
    assert {h["source"] for h in log["hypotheses"]} == {"playbook"}


def test_an_invented_flag_is_answered_with_the_reason_and_never_launched(tmp_path: Path) -> None:
    settings(tmp_path)
    steps = [READY, idea("--make-it-fast", "1"), idea("--chunked-prefill-size", "4096")]
    with ScriptedEndpoint(steps) as endpoint:
        moeagent(
            tmp_path, "run", "--run-id", "invented", "--llm", endpoint.base_url, "--limit", "experiments=1"
        )
    log = moeagent_json(tmp_path, "log", "invented")
    assert log["hypotheses"][0]["change"]["set_flags"] == {"--chunked-prefill-size": 4096}
    commands = [launch["command"] for h in log["hypotheses"] for launch in h["launches"]]
    assert not [command for command in commands if "make-it-fast" in command]
