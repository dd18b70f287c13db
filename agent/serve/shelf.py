"""The runs folder: never locked, never written; what was read is kept until a tape grows."""

from collections import OrderedDict
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from moeagent.agent.serve.seen import Row, Seen, read, row_of
from moeagent.memory.lock import look
from moeagent.memory.records import fingerprint
from moeagent.memory.run_folder import RunFolder

KEPT_ROWS = 2000
OPEN_RUNS = 8
"""Runs whose whole view is kept in memory."""
Made = TypeVar("Made")


class Kept(Generic[Made]):
    """The last few things that were made, each under its name and stamp."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._made: OrderedDict[str, tuple[str, Made]] = OrderedDict()
        self._lock = Lock()

    def get(self, name: str, stamp: str, make: Callable[[], Made]) -> Made:
        """The kept thing, or a new one where the stamp is another; one is made at a time."""
        with self._lock:
            found = self._made.get(name)
            if found is None or found[0] != stamp:
                found = (stamp, make())
                self._made[name] = found
            self._made.move_to_end(name)
            while len(self._made) > self._size:
                self._made.popitem(last=False)
            return found[1]


class Shelf:
    """All runs below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._kept: Kept[Seen] = Kept(OPEN_RUNS)
        self._rows: Kept[Row] = Kept(KEPT_ROWS)

    def names(self) -> list[str]:
        """Folders that hold a tape, in the order of their names."""
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if (path / "tape.jsonl").is_file())

    def near(self, name: str) -> list[str]:
        """Names that may have been meant."""
        return get_close_matches(name, self.names(), n=3, cutoff=0.4)

    def stamp(self, name: str) -> str:
        """Changes whenever the run is another; reads no tape."""
        folder = RunFolder(self.root / name)
        found, alive = folder.tape.stat(), look(folder.path).alive
        return f"{found.st_size}-{found.st_mtime_ns}-{'alive' if alive else 'still'}"

    def run(self, name: str) -> Seen | None:
        """The run of exactly this name; None where the folder has none. A name is never used as a path."""
        if name not in self.names():
            return None
        stamp = self.stamp(name)
        return self._kept.get(name, stamp, lambda: read(RunFolder(self.root / name), stamp))

    def rows(self) -> list[Row]:
        """A line about every run, newest first."""
        rows = [
            self._rows.get(name, stamp, partial(self._row, name, stamp)) for name, stamp in self._stamps()
        ]
        return sorted(rows, key=lambda row: (row.begun, row.run), reverse=True)

    def stamps(self) -> str:
        """Changes whenever the list of runs may look different."""
        return fingerprint(self._stamps())

    def _stamps(self) -> list[tuple[str, str]]:
        return [(name, self.stamp(name)) for name in self.names()]

    def _row(self, name: str, stamp: str) -> Row:
        return row_of(read(RunFolder(self.root / name), stamp))
