"""kill -9 at tape events: in virtual time after each one, with real processes around each kind of effect."""

import json
import secrets
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from e2e.command import (
    environment,
    kill_hard,
    moeagent,
    moeagent_json,
    start,
    tagged_processes,
    tape_lines,
    wait_for,
)
from e2e.small_run import SMALL

SETTINGS = (
    SMALL.replace("experiments = 2", "experiments = 1")
    .replace("launches = 2", "launches = 1")
    .replace("launches = 6", "launches = 2")
)
SAMPLE_EVERY = 50
"""One event in so many is tried in CI, every one with --full; each is killed twice, one of them mid-write."""


def test_kill_9_in_virtual_time_changes_nothing(full: bool, tmp_path: Path) -> None:
    every = 1 if full else SAMPLE_EVERY
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("virtual_campaign.py")), str(tmp_path), str(every)],
        env=environment(tmp_path, PYTHONWARNINGS="default"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    print(f"\nvirtual time: {told['tried']} points tried, {told['tried'] - len(told['failures'])} passed")
    assert told["failures"] == {}
    assert told["decisions"].count("hypothesis") == 6
    assert told["tried"] >= 2 * (told["lines"] // every)


def run_and_kill(folder: Path, run: str, at: int) -> bool:
    """Start a run and kill it once its tape has this many lines; False when it ended before."""
    process = start(folder, "run", "--run-id", run)
    wait_for(lambda: len(tape_lines(folder, run)) >= at or process.poll() is not None, f"line {at}", 120.0)
    ended = process.poll() is not None
    kill_hard(process)
    return not ended


def statements(folder: Path, run: str) -> list[str]:
    """Numbers of a real machine differ from run to run; what is concluded first does not."""
    log = moeagent_json(folder, "log", run)
    assert log["status"] == "finished"
    return [h["statement"] for h in log["hypotheses"]]


def measured(folder: Path, run: str) -> list[Any]:
    lines = tape_lines(folder, run)
    return [
        (line["request"]["launch"], line["request"]["spec"])
        for line, following in pairwise(lines)
        if line["type"] == "request" and line["kind"] == "load" and following["type"] == "response"
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "moeagent.toml").write_text(SETTINGS)
    run = f"calm-{secrets.token_hex(3)}"
    moeagent(folder, "run", "--run-id", run)
    return folder, run


def points(lines: list[dict[str, Any]], full: bool) -> list[int]:
    """Tape lines at which to kill: all, or around a start, a load and a stop."""
    if full:
        return list(range(1, len(lines)))
    at = {line["kind"]: n for n, line in enumerate(lines, 1) if line["type"] == "request"}
    return [at["start"], at["start"] + 1, at["load"], at["stop"]]


def test_kill_9_with_real_processes_leaves_nothing_and_loses_nothing(
    full: bool, undisturbed: tuple[Path, str], tmp_path: Path
) -> None:
    calm = statements(*undisturbed)
    tried = points(tape_lines(*undisturbed), full)
    killed = 0
    for at in tried:
        run = f"chaos-{secrets.token_hex(3)}"
        folder = tmp_path / run
        folder.mkdir()
        (folder / "moeagent.toml").write_text(SETTINGS)
        killed += run_and_kill(folder, run, at)
        moeagent(folder, "resume", run)
        rungs = measured(folder, run)
        assert len(rungs) == len({json.dumps(rung, sort_keys=True) for rung in rungs}), f"twice, at line {at}"
        assert {("L1", 1), ("L1", 8)} <= {(launch, spec["concurrency"]) for launch, spec in rungs}
        assert statements(folder, run) == calm, f"another log, at line {at}"
        assert not tagged_processes(f"{run}/"), f"left processes, at line {at}"
    print(
        f"\nreal processes: {len(tried)} points tried, {len(tried)} passed, {killed} killed before their end"
    )
    assert killed


def test_a_second_resume_of_a_running_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "moeagent.toml").write_text(SETTINGS)
    run = f"twice-{secrets.token_hex(3)}"
    process = start(tmp_path, "run", "--run-id", run)
    try:
        wait_for(lambda: len(tape_lines(tmp_path, run)) > 3, "the survey")
        refused = moeagent(tmp_path, "resume", run, code=2)
        assert f"moeagent process {process.pid} on" in refused.stderr
        assert f"kill {process.pid}" in refused.stderr
    finally:
        process.terminate()
        process.communicate(timeout=120)
    assert not tagged_processes(f"{run}/")
