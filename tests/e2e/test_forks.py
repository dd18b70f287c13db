"""Forks with something changed, and the family that they make."""

import shutil
from pathlib import Path

import pytest
from e2e.command import moeagent, moeagent_json, tape_lines

IDEA = """
[[idea]]
statement = "A smaller pool"
flags = {"--mem-fraction-static" = 0.85}
"""


@pytest.fixture(scope="module")
def forked(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished run `done` and a fork of it that tries another idea for another goal."""
    folder = tmp_path_factory.mktemp("forked")
    shutil.copytree(finished / "runs" / "done", folder / "runs" / "done")
    (folder / "idea.toml").write_text(IDEA)
    moeagent(
        folder, "fork", "done", "--at", "H1", "--goal", "min-latency", "--try", "idea.toml",
        "--set", "goal.min_effect=0.05", "--run-id", "child",
    )  # fmt: skip
    return folder


def test_a_fork_goes_on_with_the_idea_and_goal_that_it_was_given(forked: Path) -> None:
    log = moeagent_json(forked, "log", "child")
    assert log["parent"]["run"] == "done"
    assert log["hypotheses"][0]["statement"] == "A smaller pool"
    assert log["hypotheses"][0]["source"] == "user"
    assert log["changed"]["goal"] == {"name": "min-latency", "min_effect": 0.05}
    line = log["parent"]["line"]
    parent, child = (tape_lines(forked, run)[1:line] for run in ("done", "child"))
    assert parent == child


def test_a_fork_is_replayed_to_the_byte(forked: Path) -> None:
    assert moeagent_json(forked, "replay", "child")["same"]
    counts = moeagent_json(forked, "replay", "child", "--rethink")["counts"]
    assert counts["differs"] == 0


def test_the_family_is_shown(forked: Path) -> None:
    text = moeagent(forked, "runs", "--tree", COLUMNS="200").stdout
    parent, child = (line for line in text.splitlines() if "hypotheses" in line)
    assert child.index("child from done line") > parent.index("done")
    assert "with goal.min_effect=0.05, goal.name=min-latency, 1 own ideas" in child
    told = "goes on from done at line"
    for command in ("log", "status", "report"):
        assert told in moeagent(forked, command, "child", COLUMNS="200").stdout
    moeagent(forked, "report", "child", "--html", "child.html")
    assert told in (forked / "child.html").read_text()


def test_the_parts_of_parent_and_child_are_told_apart(forked: Path) -> None:
    found = moeagent_json(forked, "replay", "done", "--diff", "child")
    fork_line = moeagent_json(forked, "log", "child")["parent"]["line"]
    assert found["parted_at"][0] > fork_line
    assert any(not d["same"] for d in found["decisions"])


def test_a_fork_that_cannot_be_made_leaves_nothing(finished: Path) -> None:
    before = sorted(p.name for p in (finished / "runs").iterdir())
    for change in ("workload.seed=3", "goal.name=fastest", "no.such=1"):
        moeagent(finished, "fork", "done", "--at", "5", "--set", change, code=2)
    moeagent(finished, "fork", "done", "--at", "99999", code=2)
    assert sorted(p.name for p in (finished / "runs").iterdir()) == before
