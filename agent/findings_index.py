"""Keeping the findings store up to date while a run goes on; the tape stays the record."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moeagent.agent.events import Decided, Event, Events, Progress
from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.ledger import Ledger
from moeagent.memory.tape.lines import Json

STORE = "findings.db"
AFTER = ("verdict", "conclusion")


@contextmanager
def keep_indexed(root: Path, run: str, header: Json, ledger: Ledger, events: Events) -> Iterator[None]:
    """Index the run after every verdict and at its end.

    A store that cannot be written does not end the run: it is told, and can be rebuilt.
    """
    store = FindingsStore(root / STORE)

    def index() -> None:
        try:
            store.index(run, header, ledger)
        except sqlite3.Error as error:
            told = f"{store.path} is not up to date ({error}): `moeagent findings --rebuild` makes it anew"
            events.emit(Progress("findings", told))

    def on_event(event: Event) -> None:
        if isinstance(event, Decided) and event.kind in AFTER:
            index()

    events.listeners.append(on_event)
    try:
        yield
    finally:
        index()
        store.close()
