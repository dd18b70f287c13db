"""replay --step, --until, --speed and --diff, as a user calls them."""

from pathlib import Path

import pytest
from e2e.command import moeagent, moeagent_json
from parts.hostile import write_hostile_run
from parts.made_run import write_run
from parts.terminal import Terminal


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("replayed")
    write_run(made / "runs", "one")
    write_run(made / "runs", "two", hypotheses=3)
    write_hostile_run(made / "runs")
    return made


def test_a_person_steps_through_a_run(folder: Path) -> None:
    with Terminal(folder, "replay", "one", "--step", "--until", "H1") as terminal:
        terminal.until("q quit")
        assert "H1 improved" in terminal.plain
        terminal.press("s")
        terminal.until("against")
        terminal.press("h")
        terminal.until("Chunked prefill of 2 KiB")
        terminal.press("q")
        assert terminal.end() == 0


def test_a_dumb_terminal_can_be_stepped_on_too(folder: Path) -> None:
    with Terminal(folder, "replay", "one", "--step", TERM="dumb", NO_COLOR="1", columns=80) as terminal:
        terminal.until("q quit")
        terminal.press("d")
        terminal.until("incumbent")
        terminal.press("\x03")
        assert terminal.end() == 0
        assert "\x1b" not in terminal.seen


def test_stepping_without_a_terminal_says_what_to_do(folder: Path) -> None:
    done = moeagent(folder, "replay", "one", "--step", code=2)
    assert "--until N prints the recording" in done.stderr


@pytest.mark.parametrize("columns", ["80", "200"])
@pytest.mark.parametrize("run", ["one", "hostile"])
def test_a_recording_is_printed_safely_at_any_width(folder: Path, run: str, columns: str) -> None:
    shown = moeagent(folder, "replay", run, "--speed", "1000000", COLUMNS=columns, TERM="dumb").stdout
    assert not [c for c in shown if not c.isprintable() and c != "\n"]
    assert max(map(len, shown.splitlines())) <= int(columns)


def test_until_as_json(folder: Path) -> None:
    found = moeagent_json(folder, "replay", "one", "--until", "H1")["moments"]
    assert (found[-1]["name"], found[-1]["ids"]) == ("verdict", ["H1"])
    assert "neither" in moeagent(folder, "replay", "one", "--until", "H77", code=2).stderr


def test_diff_of_two_runs(folder: Path) -> None:
    assert "decisions are the same" in moeagent(folder, "replay", "one", "--diff", "two").stdout
    found = moeagent_json(folder, "replay", "one", "--diff", "hostile")
    assert found["parted_at"] == [2, 2]
    assert {d["same"] for d in found["decisions"]} == {True, False}


def test_one_way_at_a_time(folder: Path) -> None:
    assert "one at a time" in moeagent(folder, "replay", "one", "--diff", "two", "--step", code=2).stderr
