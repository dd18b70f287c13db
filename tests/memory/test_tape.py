"""The tape: one mechanism for record, replay, resume and fork."""

import json
from pathlib import Path

import pytest

from moeagent.memory.errors import DivergenceError, HostError, InputError, TapeError
from moeagent.memory.tape.fork import fork_tape
from moeagent.memory.tape.lines import read_tape
from moeagent.memory.tape.tape import EndOfTapeError, Tape


def never() -> dict[str, object]:
    raise AssertionError("a replay performed an effect")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.jsonl"


def record_three(path: Path) -> None:
    tape = Tape.record(path, {"run": "r1"})
    for n in range(3):
        tape.perform("ask", {"n": n, "x": 0.1 + 0.2}, lambda n=n: {"answer": n * n})
        tape.decide("square", {"of": n, "is": n * n})
    tape.close()


def test_replay_returns_what_was_recorded_without_performing(path: Path) -> None:
    record_three(path)
    tape = Tape.replay(path)
    for n in range(3):
        assert tape.perform("ask", {"n": n, "x": 0.3}, never) == {"answer": n * n}
        tape.decide("square", {"of": n, "is": n * n})
    assert not tape.waits_for_more()


def test_first_difference_is_shown_with_its_line(path: Path) -> None:
    record_three(path)
    tape = Tape.replay(path)
    with pytest.raises(DivergenceError, match=r"line 2:(.|\n)*-.*\"n\": 0(.|\n)*\+.*\"n\": 7"):
        tape.perform("ask", {"n": 7, "x": 0.3}, never)


def test_replay_of_a_cut_run_says_where_it_was_cut(path: Path) -> None:
    Tape.record(path, {"run": "r1"}).close()
    with pytest.raises(EndOfTapeError, match="the request ask"):
        Tape.replay(path).perform("ask", {}, never)


def test_errors_of_the_outside_world_are_answers(path: Path) -> None:
    def refuse() -> dict[str, object]:
        raise HostError("gpu1 is unreachable: check the name")

    tape = Tape.record(path, {})
    with pytest.raises(HostError):
        tape.perform("run", {}, refuse)
    with pytest.raises(HostError, match="gpu1 is unreachable"):
        Tape.replay(path).perform("run", {}, never)


@pytest.mark.parametrize("line_no", range(1, 11))
def test_one_changed_character_is_caught_at_its_line(path: Path, line_no: int) -> None:
    record_three(path)
    lines = path.read_text().splitlines(keepends=True)
    place = len(lines[line_no - 1]) // 2
    old = lines[line_no - 1][place]
    lines[line_no - 1] = (
        lines[line_no - 1][:place] + ("x" if old != "x" else "y") + lines[line_no - 1][place + 1 :]
    )
    path.write_text("".join(lines))
    with pytest.raises(TapeError, match=f"line {line_no} "):
        read_tape(path)


def test_a_dropped_line_is_caught(path: Path) -> None:
    record_three(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4] + lines[5:]))
    with pytest.raises(TapeError, match="line 5 "):
        read_tape(path)


def test_resume_replays_and_goes_on(path: Path) -> None:
    record_three(path)
    amends: list[object] = []
    tape = Tape.resume(path, {"at": "now", "amend": {"limit": 5}})
    tape.on_amend = amends.append
    for n in range(3):
        tape.perform("ask", {"n": n, "x": 0.3}, never)
        tape.decide("square", {"of": n, "is": n * n})
        assert bool(amends) is (n == 2)  # From the very next step on, before it asks for anything.
    assert amends == [{"limit": 5}]
    assert tape.waits_for_more()
    assert tape.live
    assert tape.perform("ask", {"n": 3}, lambda: {"answer": 9}) == {"answer": 9}
    tape.close()
    again = Tape.replay(path)
    for n in range(3):
        again.perform("ask", {"n": n, "x": 0.3}, never)
        again.decide("square", {"of": n, "is": n * n})
    assert again.perform("ask", {"n": 3}, never) == {"answer": 9}


@pytest.mark.parametrize("cut", range(2, 120, 7))
def test_a_torn_end_is_set_aside_and_the_run_goes_on(path: Path, cut: int) -> None:
    tape = Tape.record(path, {"run": "r1"})
    tape.perform("ask", {"n": 0}, lambda: {"answer": "a long answer that is torn" * 3})
    tape.close()
    sound = path.read_bytes()
    path.write_bytes(sound[:-cut])
    resumed = Tape.resume(path, {"at": "later"})
    assert resumed.perform("ask", {"n": 0}, lambda: {"answer": "again"}) == {"answer": "again"}
    resumed.close()
    assert path.read_bytes().startswith(sound[:-cut]), "recovery never edits what was written"
    assert Tape.replay(path).perform("ask", {"n": 0}, never) == {"answer": "again"}


def test_a_line_that_lost_only_its_newline_is_whole(path: Path) -> None:
    record_three(path)
    path.write_bytes(path.read_bytes()[:-1])
    resumed = Tape.resume(path, {})
    for n in range(3):
        resumed.perform("ask", {"n": n, "x": 0.3}, never)
        resumed.decide("square", {"of": n, "is": n * n})
    resumed.perform("ask", {"n": 3}, lambda: {"answer": 9})
    resumed.close()
    assert len(read_tape(path).entries) == 13


def test_a_cut_effect_is_performed_again_at_resume(path: Path) -> None:
    def killed() -> dict[str, object]:
        raise KeyboardInterrupt

    tape = Tape.record(path, {})
    with pytest.raises(KeyboardInterrupt):
        tape.perform("load", {"rung": 1}, killed)
    tape.close()
    resumed = Tape.resume(path, {})
    assert resumed.perform("load", {"rung": 1}, lambda: {"tok_s": 5.0}) == {"tok_s": 5.0}
    assert Tape.replay(path).perform("load", {"rung": 1}, never) == {"tok_s": 5.0}


def test_fork_copies_the_beginning_under_a_new_header(path: Path, tmp_path: Path) -> None:
    record_three(path)
    child = tmp_path / "fork.jsonl"
    assert fork_tape(path, child, at_line=5, header={"run": "r2", "parent": {"run": "r1", "line": 5}}) == 3
    assert read_tape(child).header["parent"] == {"run": "r1", "line": 5}
    tape = Tape.resume(child, {})
    tape.perform("ask", {"n": 0, "x": 0.3}, never)
    tape.decide("square", {"of": 0, "is": 0})
    assert tape.perform("ask", {"n": 1, "x": 9.0}, lambda: {"answer": "other"}) == {"answer": "other"}


def test_missing_tape_and_foreign_file_are_named(path: Path) -> None:
    with pytest.raises(InputError, match="there is no tape"):
        read_tape(path)
    path.write_text(json.dumps({"not": "a tape"}) + "\n")
    with pytest.raises(TapeError, match="line 1"):
        read_tape(path)


def test_an_error_that_ended_the_run_is_asked_again_after_a_resume(path: Path) -> None:
    def refuse() -> dict[str, object]:
        raise HostError("gpu1 is unreachable")

    tape = Tape.record(path, {})
    with pytest.raises(HostError):
        tape.perform("survey", {}, refuse)
    tape.mark("failed", "gpu1 is unreachable")
    tape.close()
    with pytest.raises(HostError):
        Tape.replay(path).perform("survey", {}, never)
    resumed = Tape.resume(path, {})
    assert resumed.perform("survey", {}, lambda: {"gpus": 8}) == {"gpus": 8}
    resumed.close()
    assert Tape.replay(path).perform("survey", {}, never) == {"gpus": 8}


def test_an_error_that_the_loop_lived_with_is_not_asked_again(path: Path) -> None:
    def refuse() -> dict[str, object]:
        raise HostError("no answer")

    tape = Tape.record(path, {})
    with pytest.raises(HostError):
        tape.perform("complete", {}, refuse)
    tape.decide("fallback", {})
    tape.mark("failed", "something else")
    tape.close()
    with pytest.raises(HostError):
        Tape.resume(path, {}).perform("complete", {}, never)


def test_what_this_disk_refused_is_no_answer_of_the_outside_world(path: Path) -> None:
    def full() -> dict[str, object]:
        raise TapeError("cannot write logs/1.gz: No space left on device")

    tape = Tape.record(path, {})
    with pytest.raises(TapeError):
        tape.perform("start", {}, full)
    tape.close()
    resumed = Tape.resume(path, {})
    assert resumed.perform("start", {}, lambda: {"log": "x"}) == {"log": "x"}
