"""A full disk, a read-only folder: a clear error, a sound tape; the run goes on when there is room."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from moeagent.memory.errors import InputError, TapeError
from moeagent.memory.lock import held
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import read_tape
from moeagent.memory.tape.tape import Tape

DISK_KIB = 256
ROUNDS = 12
MOMENTS = range(20)
FULL = r"cannot write .*(No space left|disk is full)(.|\n)*resume"


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", f"size={DISK_KIB}k", "tmpfs", str(place)):
        pytest.skip("a small tmpfs cannot be mounted: run as root to try full disks")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def work(folder: RunFolder, tape: Tape) -> None:
    """A run of rounds, each with a text of some KiB, an effect and a conclusion."""
    for n in range(ROUNDS):
        text = "".join(f"line {n} {i} {os.urandom(8).hex()}\n" for i in range(250))
        answer = tape.perform(
            "start", {"n": n}, lambda t=text: {"log": folder.put_text(t), "filler": t[:1500]}
        )
        assert folder.text(answer["log"]).startswith(f"line {n} ")
        tape.decide("round", {"n": n})


def free_kib(disk: Path) -> int:
    return os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize // 1024


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_full_disk_damages_nothing_and_the_run_goes_on_when_there_is_room(disk: Path, moment: int) -> None:
    folder = RunFolder.create(disk / "runs", "night")
    tape = Tape.record(folder.tape, {"run": "night"})
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * 1024 * max(0, free_kib(disk) - 4 - 3 * moment))
    try:
        with pytest.raises(TapeError, match=FULL), held(folder.path):
            work(folder, tape)
    finally:
        tape.close()
    read_tape(folder.tape)
    ballast.unlink()
    with held(folder.path), closing(Tape.resume(folder.tape, {})) as resumed:
        work(folder, resumed)
    decided = [e.body["value"]["n"] for e in read_tape(folder.tape).entries if e.type == "decision"]
    assert decided == list(range(ROUNDS))


def test_a_read_only_folder_is_named_and_can_still_be_read(disk: Path) -> None:
    folder = RunFolder.create(disk / "runs", "night")
    tape = Tape.record(folder.tape, {"run": "night"})
    tape.decide("round", {"n": 0})
    tape.close()
    assert mount("-o", "remount,ro", str(disk))
    with (
        pytest.raises(TapeError, match=r"Read-only file system.*`replay` read it"),
        held(folder.path),
    ):
        pass
    with pytest.raises(TapeError, match="Read-only file system"):
        Tape.resume(folder.tape, {})
    with pytest.raises(InputError, match=r"Read-only file system.*--runs"):
        RunFolder.create(disk / "runs", "another")
    Tape.replay(folder.tape).decide("round", {"n": 0})
