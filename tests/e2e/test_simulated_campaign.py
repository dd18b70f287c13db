"""The whole path on the simulated machine: run, log, report, replay, resume, and what must be refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from e2e.command import (
    alone_with,
    kill_hard,
    kinds,
    moeagent,
    moeagent_json,
    start,
    tagged_processes,
    tape_lines,
    wait_for,
)
from e2e.small_run import SMALL, settings

TWO_LOSSES = """
[[idea]]
statement = "One request at a time"
flags = { "--max-running-requests" = 1 }
[[idea]]
statement = "Two requests at a time"
flags = { "--max-running-requests" = 2 }
"""
"""So large that no noise decides: every run of this campaign, cut or not, has the same course."""


def test_run_prints_verdicts_and_next_commands_and_says_simulated(tmp_path: Path) -> None:
    settings(tmp_path)
    done = moeagent(tmp_path, "run", "--run-id", "one", "--limit", "experiments=1", "--limit", "launches=4")
    assert "SIMULATED" in done.stdout
    assert "moeagent replay one" in done.stdout
    assert "moeagent resume one --limit experiments=N" in done.stdout
    assert not tagged_processes("one/")


def test_every_output_is_marked_as_simulated(finished: Path) -> None:
    log = moeagent_json(finished, "log", "done")
    assert log["simulated"] is True
    assert all(launch["simulated"] for launch in log["baseline"]["launches"])
    assert "SIMULATED" in moeagent(finished, "report", "done").stdout
    assert moeagent_json(finished, "runs")["runs"][0]["simulated"] is True


def test_log_holds_hypotheses_with_number_reason_and_verdict(finished: Path) -> None:
    hypotheses = moeagent_json(finished, "log", "done")["hypotheses"]
    assert [h["id"] for h in hypotheses] == ["H1", "H2"]
    for hypothesis in hypotheses:
        assert hypothesis["statement"]
        assert hypothesis["reason"]
        assert hypothesis["refuted_by"]
        assert hypothesis["verdict"]["kind"]
        assert hypothesis["launches"]


def test_replay_gives_the_same_bytes_and_touches_nothing(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket
    import subprocess

    from moeagent.agent.campaign import replay
    from moeagent.memory.run_folder import RunFolder

    def forbidden(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a replay reached for the outside world")

    monkeypatch.setattr(socket, "socket", forbidden)
    monkeypatch.setattr(socket, "create_connection", forbidden)
    monkeypatch.setattr(subprocess, "Popen", forbidden)
    monkeypatch.setattr("os.fork", forbidden)
    monkeypatch.setattr("os.posix_spawn", forbidden)
    folder = RunFolder(finished / "runs" / "done")
    before = {p: p.read_bytes() for p in folder.path.rglob("*") if p.is_file()}
    result = replay(folder)
    assert result["same"]
    assert result["decisions"] > 5
    assert {p: p.read_bytes() for p in folder.path.rglob("*") if p.is_file()} == before


def test_log_and_report_are_the_same_bytes_every_time(finished: Path) -> None:
    first = moeagent(finished, "log", "done", "--json").stdout
    report = moeagent(finished, "report", "done").stdout
    moeagent(finished, "replay", "done")
    assert moeagent(finished, "log", "done", "--json").stdout == first
    assert moeagent(finished, "report", "done").stdout == report
    assert (finished / "runs" / "done" / "report.md").read_text() == report


def test_one_changed_character_is_caught_at_its_line(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "runs" / "done"
    shutil.copytree(finished / "runs" / "done", copy)
    lines = (copy / "tape.jsonl").read_text().splitlines(keepends=True)
    number = len(lines) // 2
    lines[number - 1] = lines[number - 1].replace('"', "'", 1)
    (copy / "tape.jsonl").write_text("".join(lines))
    done = moeagent(tmp_path, "replay", "done", code=6)
    assert f"line {number} " in done.stderr


def test_resume_of_a_finished_run_with_a_raised_limit_goes_on(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "runs", tmp_path / "runs")
    settings(tmp_path)
    before = kinds(tmp_path, "done").count("start")
    with alone_with("done"):
        moeagent(tmp_path, "resume", "done", "--limit", "experiments=3", "--limit", "launches=8")
    log = moeagent_json(tmp_path, "log", "done")
    assert len(log["hypotheses"]) == 3
    assert kinds(tmp_path, "done").count("start") > before
    moeagent(tmp_path, "replay", "done")
    assert moeagent_json(tmp_path, "replay", "done", "--rethink")["counts"]["differs"] == 0


@pytest.mark.parametrize("moment", ["start", "load", "stop"])
def test_kill_9_and_resume_gives_the_same_hypotheses_and_leaves_nothing(tmp_path: Path, moment: str) -> None:
    settings(tmp_path, SMALL + TWO_LOSSES)
    process = start(tmp_path, "run", "--run-id", "cut")
    wait_for(lambda: kinds(tmp_path, "cut").count(moment) >= 2, f"the second {moment}")
    kill_hard(process)
    moeagent(tmp_path, "resume", "cut")
    log = moeagent_json(tmp_path, "log", "cut")
    told = [(h["statement"], h["verdict"]["kind"]) for h in log["hypotheses"]]
    assert told == [("One request at a time", "regressed"), ("Two requests at a time", "regressed")]
    assert log["status"] == "finished"
    measured = [
        (line["request"]["launch"], line["request"]["spec"]["seed"])
        for line, following in zip(tape_lines(tmp_path, "cut"), tape_lines(tmp_path, "cut")[1:], strict=False)
        if line["type"] == "request" and line["kind"] == "load" and following["type"] == "response"
    ]
    assert len(measured) == len(set(measured)), "a rung was measured twice"
    assert not tagged_processes("cut/")
    moeagent(tmp_path, "replay", "cut")


def test_sigterm_stops_at_a_safe_point_and_prints_the_resume_command(tmp_path: Path) -> None:
    settings(tmp_path)
    process = start(tmp_path, "run", "--run-id", "stopped")
    wait_for(lambda: "load" in kinds(tmp_path, "stopped"), "the first load")
    process.terminate()
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "moeagent resume stopped" in output
    assert not tagged_processes("stopped/")
    assert moeagent_json(tmp_path, "log", "stopped")["status"] == "stopped"
    moeagent(tmp_path, "resume", "stopped")
    assert moeagent_json(tmp_path, "log", "stopped")["status"] == "finished"


def test_a_later_run_does_not_repeat_what_an_earlier_one_refuted(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "runs", tmp_path / "runs")
    settings(tmp_path)
    earlier = moeagent_json(tmp_path, "log", "done")["hypotheses"]
    refuted = [
        h["change"] for h in earlier if h["verdict"]["kind"] in ("blocked", "regressed", "neutral", "no-op")
    ]
    moeagent(tmp_path, "run", "--run-id", "later")
    launched = [h["change"] for h in moeagent_json(tmp_path, "log", "later")["hypotheses"]]
    assert not [change for change in launched if change in refuted]


def test_fork_goes_its_own_way_from_a_line(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "runs", tmp_path / "runs")
    lines = tape_lines(tmp_path, "done")
    at = 1 + next(i for i, line in enumerate(lines) if line.get("kind") == "hypothesis")
    moeagent(tmp_path, "fork", "done", "--at", str(at), "--limit", "experiments=1")
    newest = moeagent_json(tmp_path, "runs")["runs"][0]["run"]
    assert newest != "done"
    forked = json.loads(
        (tmp_path / "runs" / newest / "tape.jsonl").read_text().splitlines()[0].partition(" ")[2]
    )
    assert forked["parent"] == {"run": "done", "line": at}
    moeagent(tmp_path, "replay", newest)
