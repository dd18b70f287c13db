"""The live view on real terminals, and without one."""

import json
from pathlib import Path
from typing import Any

import pytest
from e2e.command import moeagent, moeagent_json
from e2e.small_run import settings
from parts.made_run import BASELINE, MadeRun, facts, rung
from parts.terminal import Terminal

from moeagent.memory.ledger import Incumbent
from moeagent.memory.lock import held


def waiting(root: Path) -> MadeRun:
    """A run that measures its first launch."""
    run = MadeRun(root, "live")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.load("L1", 1, rung(1))
    run.load("L1", 10)
    return run


@pytest.mark.parametrize(("columns", "extra"), [(80, {}), (200, {}), (80, {"NO_COLOR": "1"})])
def test_watch_keeps_one_screen_up_to_date(tmp_path: Path, columns: int, extra: dict[str, str]) -> None:
    run = waiting(tmp_path / "runs")
    with (
        held(run.folder.path),
        Terminal(tmp_path, "watch", "live", columns=columns, **extra) as terminal,
    ):
        terminal.until("measuring L1 at concurrency 10")
        run.load("L1", 64)
        terminal.until("concurrency 64")
        terminal.press("\x03")
        assert terminal.end() == 0
    assert ("\x1b[1;34m" in terminal.seen) is not extra
    assert "the run itself goes on" in terminal.plain


def test_watch_on_a_dumb_terminal_prints_lines(tmp_path: Path) -> None:
    run = waiting(tmp_path / "runs")
    with held(run.folder.path), Terminal(tmp_path, "watch", "live", columns=80, TERM="dumb") as terminal:
        terminal.until("measuring L1 at concurrency 10")
        terminal.press("\x03")
        assert terminal.end() == 0
    assert "\x1b" not in terminal.seen


def test_a_run_shows_its_panel_below_the_decisions_and_leaves_none_behind(tmp_path: Path) -> None:
    settings(tmp_path)
    with Terminal(tmp_path, "run", "--run-id", "seen", "--goal", "max-throughput") as terminal:
        terminal.until("of 6 launches")
        assert moeagent_json(tmp_path, "status", "seen")["status"] == "under way"
        assert terminal.end() == 0
    assert "spent:" in terminal.plain
    assert not (tmp_path / "runs" / "seen" / "live.json").exists()
    assert moeagent(tmp_path, "status", "seen").stdout.count("SIMULATED") == 1


def decisions(printed: str) -> list[dict[str, Any]]:
    """What was decided, of the events of a run."""
    return [event for event in map(json.loads, printed.splitlines()) if "kind" in event]


def test_a_run_tells_programs_each_decision_once_and_people_what_comes_next(tmp_path: Path) -> None:
    settings(tmp_path)
    ran = moeagent(tmp_path, "run", "--run-id", "told", "--limit", "launches=1", "--json-events")
    told = decisions(ran.stdout)
    assert told == decisions(moeagent(tmp_path, "watch", "told", "--json-events").stdout)
    assert "launch" in [event["kind"] for event in told]
    statuses = {event["status"] for event in map(json.loads, ran.stdout.splitlines()) if "status" in event}
    assert statuses == {"under way", "finished"}
    assert json.loads(ran.stdout.splitlines()[-1])["status"] == "finished"
    assert "moeagent report told" in ran.stderr


def test_one_object_and_an_object_a_line_are_not_both_printed(tmp_path: Path) -> None:
    settings(tmp_path)
    refused = moeagent(tmp_path, "run", "--json", "--json-events", code=2)
    assert "choose one of them" in refused.stderr
    assert not (tmp_path / "runs").exists()
