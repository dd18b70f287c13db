"""The findings store made again from the tapes and the review files."""

from pathlib import Path

from moeagent.memory.errors import InputError, MoeagentError
from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import Record
from moeagent.memory.review import last_judgements, read_reviews
from moeagent.memory.run_folder import RunFolder, list_runs


class Rebuilt(Record):
    """What a rebuild did."""

    indexed: tuple[str, ...]
    skipped: dict[str, str]
    """Runs that could not be read, with the reason."""
    moved_away: str | None = None
    """Where a file went that was not a store."""


def rebuild(root: Path, path: Path) -> Rebuilt:
    """Index every run below the root anew; runs whose folder is gone leave the index.

    A file that is no store is moved away first. Runs that go on meanwhile keep writing to the same store.
    """
    store, moved = _open(path)
    try:
        indexed, skipped = [], {}
        for folder in list_runs(root):
            try:
                _index(store, folder)
            except MoeagentError as error:
                skipped[folder.id] = str(error)
            else:
                indexed.append(folder.id)
        for gone in set(store.runs()) - set(indexed):
            store.forget(gone)
    finally:
        store.close()
    return Rebuilt(indexed=tuple(sorted(indexed)), skipped=skipped, moved_away=moved)


def _index(store: FindingsStore, folder: RunFolder) -> None:
    tape = folder.read_tape()
    ledger = Ledger.from_entries(tape.entries)
    judgements = last_judgements(read_reviews(folder)).values()
    store.forget(folder.id)
    store.index(folder.id, tape.header, ledger)
    store.judge(folder.id, judgements)


def _open(path: Path) -> tuple[FindingsStore, str | None]:
    try:
        return FindingsStore(path), None
    except InputError:
        if not path.is_file():
            raise
    aside = path.with_name(f"{path.name}.not-a-store")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.replace(aside)
    return FindingsStore(path), str(aside)
