"""A run in slices: it pauses between two launches and goes on from its folder alone, wherever that is."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from e2e.command import kill_hard, kinds, moeagent, moeagent_json, start, tagged_processes, wait_for
from e2e.small_run import settings


def test_a_slice_is_taken_up_at_another_place(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    settings(here)
    first = moeagent(
        here, "run", "--run-id", "slices", "--goal", "max-throughput", "--pause-after", "launches=2"
    )
    assert "paused after 2 launches" in first.stderr
    assert "moeagent resume slices" in first.stdout
    assert not tagged_processes("slices/")
    shutil.move(here / "runs", there / "runs")
    shutil.rmtree(here)
    before = moeagent_json(there, "log", "slices")
    assert before["status"] == "stopped"
    moeagent(there, "resume", "slices", "--pause-after", "minutes=30")
    after = moeagent_json(there, "log", "slices")
    assert after["status"] == "finished"
    assert after["baseline"]["launches"][:2] == before["baseline"]["launches"]
    assert after["hypotheses"]
    moeagent(there, "replay", "slices")


def test_a_launch_that_its_machine_took_away_is_begun_anew(tmp_path: Path) -> None:
    """Machine, servers, folders and caches are gone in mid-rung; the run folder came back."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    settings(here)
    run = start(here, "run", "--run-id", "taken", "--goal", "max-throughput")
    wait_for(lambda: kinds(here, "taken")[-1:] == ["load"], "the first rung")
    kill_hard(run)
    for pid in tagged_processes("taken/"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.move(here / "runs", there / "runs")
    shutil.rmtree(here, ignore_errors=True)
    settings(there)
    moeagent(there, "resume", "taken", "--pause-after", "launches=1")
    log = moeagent_json(there, "log", "taken")
    assert log["status"] == "stopped"
    assert [launch["outcome"] for launch in log["baseline"]["launches"]] == ["completed"]
    assert "was started again" in " ".join(note["text"] for note in log["notes"])
    moeagent(there, "replay", "taken")


@pytest.mark.parametrize("word", ["launches=0", "launches=x", "hours=1", "minutes", "minutes=-1"])
def test_a_slice_that_cannot_be_meant_is_refused(tmp_path: Path, word: str) -> None:
    settings(tmp_path)
    refused = moeagent(tmp_path, "run", "--pause-after", word, code=2)
    assert "launches=N or minutes=N" in refused.stderr
    assert not (tmp_path / "runs").exists()


def test_a_limit_is_the_new_limit_not_an_addition(tmp_path: Path, finished: Path) -> None:
    refused = moeagent(finished, "resume", "done", "--limit", "launches=+3", code=2)
    assert "write the new limit as a number" in refused.stderr
