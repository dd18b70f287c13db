"""What can be saved of a damaged run, and that the old one is never written."""

from pathlib import Path

import pytest

from moeagent.memory.errors import InputError, TapeError
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.salvage import check_run, salvage
from moeagent.memory.tape.lines import read_tape
from moeagent.memory.tape.tape import Tape

ROUNDS = 3


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run of three rounds: a start with a log (lines 2 and 3 of the first), a load, a decision."""
    folder = RunFolder.create(tmp_path / "runs", "old")
    tape = Tape.record(folder.tape, {"run": "old", "parent": None})
    for n in range(ROUNDS):
        tape.perform("start", {"n": n}, lambda n=n: {"log": folder.put_text(f"log {n}")})
        tape.perform("load", {"n": n}, lambda n=n: {"rung": {"raw": folder.put_raw(b"%d" % n)}})
        tape.decide("round", {"n": n})
    tape.close()
    return folder


def files(folder: RunFolder) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


def damage_line(folder: RunFolder, number: int) -> None:
    lines = folder.tape.read_bytes().splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].replace(b'"', b"'", 1)
    folder.tape.write_bytes(b"".join(lines))


def saved(folder: RunFolder, tmp_path: Path) -> RunFolder:
    before = files(folder)
    new = salvage(folder, tmp_path / "runs", "new", {"parent": {"run": "old"}})
    assert files(folder) == before, "the old run was written"
    return new


def test_a_sound_run_is_sound(folder: RunFolder) -> None:
    check = check_run(folder)
    assert check.sound
    assert (check.tape, check.sound_lines, check.usable_lines) == ("sound", 16, 16)


def test_a_torn_end_is_no_damage(folder: RunFolder) -> None:
    folder.tape.write_bytes(folder.tape.read_bytes()[:-5])
    check = check_run(folder)
    assert check.sound
    assert (check.tape, check.sound_lines) == ("torn", 15)


@pytest.mark.parametrize("line", range(2, 17))
def test_everything_before_a_damaged_line_is_saved_and_can_go_on(
    folder: RunFolder, tmp_path: Path, line: int
) -> None:
    damage_line(folder, line)
    check = check_run(folder)
    assert (check.tape, check.sound_lines) == ("damaged", line - 1)
    assert f"line {line} " in check.problem
    new = saved(folder, tmp_path)
    assert check_run(new).sound
    tape = Tape.resume(new.tape, {})
    for n in range(ROUNDS):
        answer = tape.perform("start", {"n": n}, lambda n=n: {"log": new.put_text(f"log {n}")})
        assert new.text(answer["log"]) == f"log {n}"
        tape.perform("load", {"n": n}, lambda n=n: {"rung": {"raw": new.put_raw(b"%d" % n)}})
        tape.decide("round", {"n": n})
    tape.close()


def test_the_new_run_knows_where_it_comes_from(folder: RunFolder, tmp_path: Path) -> None:
    damage_line(folder, 9)
    header = read_tape(saved(folder, tmp_path).tape).header
    assert (header["run"], header["parent"]) == ("new", {"run": "old"})


@pytest.mark.parametrize(("kind", "kept"), [("logs", 7), ("load", 9)])
@pytest.mark.parametrize("removed", [True, False])
def test_nothing_that_names_a_missing_or_changed_file_is_kept(
    folder: RunFolder, tmp_path: Path, kind: str, kept: int, removed: bool
) -> None:
    name = folder.put_text("log 1") if kind == "logs" else folder.put_raw(b"1")
    (path,) = (folder.path / kind).glob(f"{name}*")
    path.unlink() if removed else path.write_bytes(b"something else")
    check = check_run(folder)
    assert not check.sound
    assert list(check.damaged_files) == [f"{kind}/{name}"]
    assert check.usable_lines == kept
    assert check_run(saved(folder, tmp_path)).sound


def test_of_a_damaged_first_line_nothing_is_saved(folder: RunFolder) -> None:
    damage_line(folder, 1)
    with pytest.raises(TapeError, match=r"line 1 .*campaign\.toml.*moeagent run --config"):
        check_run(folder)


def test_an_existing_run_is_never_written_over(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        salvage(folder, tmp_path / "runs", "old", {})
