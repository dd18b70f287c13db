"""Where two runs part, and which decisions they do not share."""

import io
from pathlib import Path

from parts.made_run import GOAL, write_run

from moeagent.agent.show.text import console
from moeagent.agent.show.two_runs import two_runs, two_runs_text
from moeagent.memory.records import VerdictKind
from moeagent.memory.run_folder import RunFolder

IMPROVED, REGRESSED, NEUTRAL = VerdictKind.IMPROVED, VerdictKind.REGRESSED, VerdictKind.NEUTRAL


def printed(one: RunFolder, other: RunFolder) -> str:
    screen = console()
    screen.file = out = io.StringIO()
    screen.print(two_runs_text(two_runs(one.read_tape(), other.read_tape())))
    return out.getvalue()


def test_equal_runs_have_no_difference(tmp_path: Path) -> None:
    one, other = write_run(tmp_path, "one"), write_run(tmp_path, "other")
    found = two_runs(one.read_tape(), other.read_tape())
    assert found.parted_at is None
    assert found.first == ""
    assert all(pair.same for pair in found.pairs)
    assert f"the same for {found.shared} lines; there one of them ends" in printed(one, other)


def test_the_first_difference_and_what_follows_from_it(tmp_path: Path) -> None:
    one = write_run(tmp_path, "one", kinds=(IMPROVED, REGRESSED), hypotheses=2)
    other = write_run(tmp_path, "other", kinds=(NEUTRAL, REGRESSED), hypotheses=2, goal=GOAL)
    found = two_runs(one.read_tape(), other.read_tape())
    assert found.parted_at is not None
    parted = one.read_tape().entries[found.parted_at[0] - 1]
    assert parted.kind == "launch"
    assert parted.body["value"]["hypothesis"] == "H1"
    unlike = [(p.one and p.one.kind, p.other and p.other.kind) for p in found.pairs if not p.same]
    assert ("verdict", "verdict") in unlike
    assert ("incumbent", None) in unlike
    text = printed(one, other)
    assert "then - one line 12, + other line 12" in text
    assert "improved" in text
    assert "neutral" in text


def test_settings_that_differ_are_named(tmp_path: Path) -> None:
    one = write_run(tmp_path, "one")
    other = write_run(tmp_path, "other", start_timeout_s=60.0)
    assert "setting start_timeout_s: 1800.0 in one, 60.0 in other" in printed(one, other)
