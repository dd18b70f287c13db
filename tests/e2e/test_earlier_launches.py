"""A second campaign on the same machine knows its noise from the first one's launches."""

from pathlib import Path

from e2e.command import kinds, moeagent, moeagent_json
from e2e.small_run import settings


def test_the_noise_of_an_earlier_run_is_known_and_replays_without_the_store(tmp_path: Path) -> None:
    settings(tmp_path)
    for run in ("first", "second"):
        moeagent(tmp_path, "run", "--run-id", run, "--limit", "launches=2")

    told = {run: moeagent_json(tmp_path, "log", run)["notes"] for run in ("first", "second")}
    assert not [note for note in told["first"] if note["about"] == "noise"]
    (note,) = [note for note in told["second"] if note["about"] == "noise"]
    assert note["text"].startswith("2 earlier launches of this baseline")

    for store in (tmp_path / "runs").glob("findings.db*"):
        store.unlink()
    moeagent(tmp_path, "replay", "second")
    assert moeagent_json(tmp_path, "replay", "second", "--rethink")["counts"]["differs"] == 0
    assert kinds(tmp_path, "second").count("earlier") == 1
