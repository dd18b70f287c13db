"""Two controllers, one host, one run id."""

import secrets
from pathlib import Path

from e2e.command import kinds, moeagent, moeagent_json, start, tagged_processes, wait_for
from e2e.small_run import settings


def test_the_second_is_refused_and_the_first_is_not_disturbed(tmp_path: Path) -> None:
    run = f"night-{secrets.token_hex(3)}"
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        settings(folder)
    process = start(first, "run", "--run-id", run, "--limit", "launches=2")
    wait_for(lambda: "start" in kinds(first, run), "the first server", 120)
    one_host = {"HOME": str(first), "TMPDIR": str(first / "tmp")}
    refused = moeagent(second, "run", "--run-id", run, code=2, **one_host)
    assert "belongs to another run of that name" in refused.stderr
    assert str(first / "runs" / run) in refused.stderr
    assert "start" not in kinds(second, run)
    process.communicate(timeout=240)
    assert process.returncode == 0
    assert moeagent_json(first, "log", run)["status"] == "finished"
    assert not tagged_processes(f"{run}/")
    again = moeagent(second, "resume", run, code=2, **one_host)
    assert "belongs to another run" in again.stderr
