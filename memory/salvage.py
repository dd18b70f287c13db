"""What is sound in a run's folder, and a new run made of it. The old folder is never written."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from moeagent.memory.errors import TapeError
from moeagent.memory.lock import LockState, look
from moeagent.memory.records.base import Record
from moeagent.memory.run_folder import RunFolder, write_private
from moeagent.memory.tape.fork import copy_entries
from moeagent.memory.tape.lines import Entry, Json, scan_tape

TEXTS = ("launches", "log", "outputs", "sample")
RAW = "raw"
"""The fields of answers that name a file: a text in logs/, per-request results in load/."""


class RunCheck(Record):
    """How a run's folder is."""

    run: str
    tape: Literal["sound", "torn", "damaged"]
    """torn: the last line was cut while it was written and never took effect, as after a crash."""
    problem: str = ""
    """What is wrong with the first bad line."""
    sound_lines: int
    """Line number of the last line that is sound, and so are all before it."""
    damaged_files: dict[str, str]
    """Files that the sound lines name and that are missing or changed, with what is wrong."""
    usable_lines: int
    """Line number up to which every named file is sound as well: what `salvage` keeps."""
    lock: LockState

    @property
    def sound(self) -> bool:
        """Whether the run can go on as it is."""
        return self.tape != "damaged" and not self.damaged_files


def check_run(folder: RunFolder) -> RunCheck:
    """Read a whole run. Raises InputError without a tape, TapeError when its first line is damaged."""
    tape, problem = scan_tape(folder.tape)
    damaged: dict[str, str] = {}
    usable = tape.entries[-1].line_no
    for before, entry in zip(tape.entries, tape.entries[1:], strict=False):
        wrong = {file: why for file in _named(entry) if (why := _wrong(folder, *file)) is not None}
        if wrong:
            usable = min(usable, before.line_no)
            damaged |= {f"{kind}/{name}": why for (kind, name), why in wrong.items()}
    return RunCheck(
        run=folder.id,
        tape="damaged" if problem else "torn" if tape.torn else "sound",
        problem=str(problem or ""),
        sound_lines=tape.entries[-1].line_no,
        damaged_files=damaged,
        usable_lines=usable,
        lock=look(folder.path),
    )


def salvage(folder: RunFolder, root: Path, run_id: str, header: Json) -> RunFolder:
    """A new run of the old one's usable lines and the files that they name; `resume` goes on from there.

    `header` is laid over the old one. Raises as `check_run`, and InputError when the new folder exists.
    """
    usable = check_run(folder).usable_lines
    tape, _ = scan_tape(folder.tape)
    kept = [entry for entry in tape.entries[1:] if entry.line_no <= usable]
    new = RunFolder.create(root, run_id)
    for kind, name in {file for entry in kept for file in _named(entry)}:
        path = _path(folder, kind, name)
        write_private(_path(new, kind, name), path.read_bytes())
    settings = folder.path / "campaign.toml"
    if settings.is_file():
        write_private(new.path / settings.name, settings.read_bytes())
    copy_entries(kept, new.tape, {**tape.header, **header, "run": new.id})
    return new


def _named(entry: Entry) -> list[tuple[str, str]]:
    """(folder, name) of each file that an answer names; conclusions repeat these."""
    return list(_names_in(entry.body)) if entry.type == "response" else []


def _names_in(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _names_in(item)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in TEXTS and isinstance(inner, str) and inner:
            yield "logs", inner
        elif key == RAW and isinstance(inner, str) and inner:
            yield "load", inner
        else:
            yield from _names_in(inner)


def _path(folder: RunFolder, kind: str, name: str) -> Path:
    return folder.path / kind / f"{name}{'.gz' if kind == 'logs' else '.bin'}"


def _wrong(folder: RunFolder, kind: str, name: str) -> str | None:
    try:
        if kind == "logs":
            folder.text(name)
        else:
            folder.raw(name)
    except TapeError as error:
        return str(error)
    return None
