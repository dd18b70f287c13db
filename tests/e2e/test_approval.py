"""Approval as an engineer meets it: on a terminal, without one, and the next morning."""

import json
import os
import pty
import subprocess
from pathlib import Path

from e2e.command import MOEAGENT, TIMEOUT_S, environment, kinds, moeagent, moeagent_json, tape_lines
from e2e.small_run import settings

from moeagent.memory.records import ServerConfig

LAUNCHES = ("--limit", "launches=5", "--limit", "experiments=3")


def decisions(folder: Path, run: str) -> list[dict[str, str]]:
    lines = tape_lines(folder, run)
    return [x["value"] for x in lines if x["type"] == "decision" and x["kind"] == "approval"]


def launched(folder: Path, run: str) -> set[str]:
    """Ids of the configurations that were launched."""
    lines = tape_lines(folder, run)
    found = [x["value"] for x in lines if x["type"] == "decision" and x["kind"] == "launch"]
    return {ServerConfig.model_validate(x["config"]).id for x in found}


def test_without_a_terminal_the_run_waits_and_the_printed_commands_go_on(tmp_path: Path) -> None:
    settings(tmp_path)
    done = moeagent(tmp_path, "run", "--run-id", "asked", "--approve", "always", *LAUNCHES, code=9)
    assert "moeagent resume asked --approve-next" in done.stdout
    assert "H1 waits for approval" in done.stderr
    log = moeagent_json(tmp_path, "log", "asked")
    assert log["status"] == "awaiting approval"
    assert [h["launches"] for h in log["hypotheses"]] == [[]]
    assert moeagent_json(tmp_path, "status", "asked")["status"] == "awaiting approval"

    moeagent(tmp_path, "resume", "asked", code=9)
    again = moeagent_json(tmp_path, "log", "asked")
    assert [h["id"] for h in again["hypotheses"]] == ["H1"], "the same hypothesis still waits"

    moeagent(tmp_path, "resume", "asked", "--approve-next", code=9)
    moeagent(tmp_path, "resume", "asked", "--decline-next", "--approve", "never")
    log = moeagent_json(tmp_path, "log", "asked")
    assert log["status"] == "finished"
    assert log["hypotheses"][0]["launches"]
    said = decisions(tmp_path, "asked")
    assert [d["answer"] for d in said] == ["awaiting", "awaiting", "approved", "awaiting", "declined"]
    assert "on the command line" in said[2]["by"]
    assert said[2]["config"] in launched(tmp_path, "asked")
    assert said[4]["config"] not in launched(tmp_path, "asked")

    questions = kinds(tmp_path, "asked").count("approve")
    assert moeagent_json(tmp_path, "replay", "asked")["same"]
    assert kinds(tmp_path, "asked").count("approve") == questions


def test_on_a_terminal_the_engineer_sees_what_would_run_and_answers(tmp_path: Path) -> None:
    settings(tmp_path)
    ours, theirs = pty.openpty()
    os.write(ours, b"perhaps\ny\nskip\nn\n" + b"y\n" * 20)
    done = subprocess.run(
        [*MOEAGENT, "run", "--run-id", "answered", "--approve", "always", *LAUNCHES],
        cwd=tmp_path,
        env=environment(tmp_path, COLUMNS="300"),
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    for shown in ("sglang.launch_server", "risk", "predicted", "GPU-hours", "asked by", "[y/n/skip]"):
        assert shown in done.stderr
    assert "Please select one of the available options" in done.stderr
    said = decisions(tmp_path, "answered")
    assert [d["answer"] for d in said][:3] == ["approved", "skipped", "declined"]
    assert "@" in said[0]["by"]
    assert moeagent_json(tmp_path, "replay", "answered")["same"]


def test_a_policy_file_denies_and_allows_without_asking(tmp_path: Path) -> None:
    settings(tmp_path)
    (tmp_path / "policy.toml").write_text(
        '[[rule]]\naction = "allow"\ncommand = ["*"]\n'
        '[[rule]]\naction = "deny"\nflags = {"--*" = "*"}\nreason = "flags are frozen"\n'
    )
    with_policy = ("--approve", "always", "--policy", "policy.toml")
    done = moeagent(tmp_path, "run", "--run-id", "ruled", *with_policy, *LAUNCHES)
    assert "flags are frozen" in done.stdout
    log = moeagent_json(tmp_path, "log", "ruled")
    frozen = [h for h in log["hypotheses"] if h["change"]["set_flags"] or h["change"]["remove_flags"]]
    assert frozen
    assert all(h["launches"] == [] for h in frozen)
    kept = json.loads((tmp_path / "runs/ruled/tape.jsonl").read_text().splitlines()[0].partition(" ")[2])
    assert kept["settings"]["policy"]["rule"][1]["reason"] == "flags are frozen"


def test_a_wrong_mode_or_policy_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    settings(tmp_path)
    assert "never, risky, always" in moeagent(tmp_path, "run", "--approve", "often", code=2).stderr
    (tmp_path / "p.toml").write_text('[[rule]]\naction = "deny"\n')
    assert "no condition" in moeagent(tmp_path, "run", "--policy", "p.toml", code=2).stderr
    assert not (tmp_path / "runs").exists()
