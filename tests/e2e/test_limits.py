"""Limits that end a real run, and the command that raises them."""

from pathlib import Path

from e2e.command import moeagent, moeagent_json
from e2e.small_run import SMALL, settings

PRICED = SMALL.replace('target = "sim"', 'target = "sim"\nprice_per_hour = 3600.0')


def launches(folder: Path, run: str) -> int:
    log = moeagent_json(folder, "log", run)
    return len(log["baseline"]["launches"]) + sum(len(h["launches"]) for h in log["hypotheses"])


def test_gpu_hours_end_a_run_and_a_raised_limit_goes_on(tmp_path: Path) -> None:
    settings(tmp_path)
    done = moeagent(tmp_path, "run", "--run-id", "short", "--limit", "gpu_hours=0.002")
    (end,) = [line for line in done.stdout.splitlines() if line.startswith("run short finished")]
    assert "the limit of 0.002 GPU-hours" in end
    assert "go on:  moeagent resume short --limit gpu_hours=N" in done.stdout
    before = launches(tmp_path, "short")
    moeagent(tmp_path, "resume", "short", "--limit", "gpu_hours=100", "--limit", f"launches={before + 1}")
    assert launches(tmp_path, "short") == before + 1
    assert (
        moeagent_json(tmp_path, "log", "short")["reason"] == f"the limit of {before + 1} launches is reached"
    )
    assert moeagent_json(tmp_path, "replay", "short")["same"]


def test_money_ends_a_run(tmp_path: Path) -> None:
    settings(tmp_path, PRICED)
    done = moeagent(tmp_path, "run", "--run-id", "dear", "--limit", "money=1")
    assert "the limit of 1 units of money" in done.stdout
    assert "--limit money=N" in done.stdout
    assert launches(tmp_path, "dear") <= 1


def test_a_limit_that_is_no_limit_is_refused_and_the_run_stays_as_it_is(tmp_path: Path) -> None:
    settings(tmp_path)
    moeagent(tmp_path, "run", "--run-id", "small", "--limit", "launches=1")
    lines = (tmp_path / "runs/small/tape.jsonl").read_bytes()
    for word in ("experiments=-1", "hours=0", "hours=soon", "patience=3"):
        assert "--limit" in moeagent(tmp_path, "resume", "small", "--limit", word, code=2).stderr
    assert (tmp_path / "runs/small/tape.jsonl").read_bytes() == lines
