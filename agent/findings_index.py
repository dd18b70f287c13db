"""Keeping the findings store up to date while a run goes on; the tape stays the record."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moeagent.agent.events import Decided, Event, Events
from moeagent.memory.findings.store import FindingsStore
from moeagent.memory.ledger import Ledger
from moeagent.memory.tape.lines import Json

STORE = "findings.db"
AFTER = ("verdict", "conclusion")


@contextmanager
def keep_indexed(root: Path, run: str, header: Json, ledger: Ledger, events: Events) -> Iterator[None]:
    """Index the run after every verdict and at its end."""
    store = FindingsStore(root / STORE)

    def on_event(event: Event) -> None:
        if isinstance(event, Decided) and event.kind in AFTER:
            store.index(run, header, ledger)

    events.listeners.append(on_event)
    try:
        yield
    finally:
        store.index(run, header, ledger)
        store.close()
