"""Every recorded decision, made again by this version on the state that was recorded before it.

Unlike a replay this does not stop where something differs, and needs neither the recording's version nor its
data: the recorded decision is what the following ones are judged on.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal, get_args

from pydantic import ValidationError

from moeagent.agent.recorded_state import RecordedState
from moeagent.agent.second_thoughts import NoDecisionError, NotDecidedHereError, SecondThoughts
from moeagent.memory.errors import InputError
from moeagent.memory.ledger import DECISIONS, kind_of, value_of
from moeagent.memory.records import Record
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Entry
from moeagent.memory.tape.tape import rounded
from moeagent.tools.diagnosis.catalogue import Catalogue

Outcome = Literal["same", "differs", "not decided here"]
CLOSE = 1e-6
"""Relative difference of two numbers below which they are the same: the tape holds nine digits."""


class Change(Record):
    """One field that differs; None where there is no such field or decision."""

    field: str
    """Dotted, such as diagnosis.class; empty for the decision as a whole."""
    recorded: Any
    now: Any


class Rethought(Record):
    """One decision, then and now."""

    line: int
    """Of the tape."""
    kind: str
    about: str
    """The hypothesis or launch that it is about."""
    outcome: Outcome
    why: str = ""
    changes: tuple[Change, ...] = ()


class Rethinking(Record):
    """The whole run."""

    run: str
    loop: int
    """Version of the loop that recorded it."""
    moeagent: str
    decisions: tuple[Rethought, ...]

    def counts(self) -> dict[str, int]:
        """Decisions by outcome."""
        outcomes = [d.outcome for d in self.decisions]
        return {outcome: outcomes.count(outcome) for outcome in get_args(Outcome)}


def rethink(folder: RunFolder, catalogue: Catalogue | None = None) -> Rethinking:
    """Every decision of a run. Raises TapeError for a damaged tape or a missing log, nothing for old ones."""
    tape = folder.read_tape()
    state = RecordedState(folder, tape.header)
    return Rethinking(
        run=tape.header["run"],
        loop=tape.header["loop"],
        moeagent=tape.header["moeagent"],
        decisions=tuple(_walk(tape.entries, state, SecondThoughts(state, catalogue))),
    )


def _walk(entries: tuple[Entry, ...], state: RecordedState, now: SecondThoughts) -> Iterator[Rethought]:
    asked: dict[str, Any] = {}
    for entry in entries:
        yield from _omitted(entry, state, now)
        match entry.type:
            case "request":
                asked = entry.body
            case "response" if "response" in entry.body:
                state.hear(asked["kind"], asked["request"], entry.body["response"])
            case "marker":
                state.amend(entry.body)
            case "decision":
                yield _decided(entry, state, now)


def _decided(entry: Entry, state: RecordedState, now: SecondThoughts) -> Rethought:
    """A recorded decision against that of today; then the recorded one holds."""
    kind, value = entry.body["kind"], entry.body["value"]
    try:
        recorded = DECISIONS[kind].model_validate(value)
    except (KeyError, ValidationError):
        return _told(entry, kind, value, "not decided here", "this version does not know its form")
    try:
        found = now.on(recorded)
    except NotDecidedHereError as error:
        outcome = _told(entry, kind, value, "not decided here", str(error))
    except (NoDecisionError, InputError) as error:
        changes = (Change(field="", recorded=value, now=None),)
        outcome = _told(entry, kind, value, "differs", str(error), changes)
    else:
        outcome = _compared(entry, kind, value, found)
    state.accept(recorded)
    return outcome


def _compared(entry: Entry, kind: str, value: Any, found: Record) -> Rethought:
    new_kind, new = kind_of(found), rounded(value_of(found))
    if new_kind != kind:
        whole = (Change(field="", recorded=value, now=new),)
        return _told(entry, kind, value, "differs", f"it would be a {new_kind} now", whole)
    changes = tuple(differences(value, new))
    return _told(entry, kind, value, "differs" if changes else "same", "", changes)


def _omitted(entry: Entry, state: RecordedState, now: SecondThoughts) -> Iterator[Rethought]:
    """Remedies and verdicts that would stand here now and are not on the tape."""
    found: Record | None = None
    if state.awaits_pivot and entry.type in ("request", "decision"):
        state.awaits_pivot = False
        found = None if entry.body["kind"] == "pivot" else now.omitted_pivot()
    elif entry.type == "request" and entry.body["kind"] == "clock" and state.clocks == int(state.failed):
        found = now.omitted_verdict()
    if found is not None:
        value = rounded(value_of(found))
        whole = (Change(field="", recorded=None, now=value),)
        yield _told(entry, kind_of(found), value, "differs", "the recording has no such decision", whole)


def _told(
    entry: Entry, kind: str, value: Any, outcome: Outcome, why: str, changes: tuple[Change, ...] = ()
) -> Rethought:
    about = next((str(value[key]) for key in ("id", "hypothesis", "name") if value.get(key)), "")
    return Rethought(line=entry.line_no, kind=kind, about=about, outcome=outcome, why=why, changes=changes)


def differences(recorded: Any, now: Any, field: str = "") -> Iterator[Change]:
    """The fields that differ between two values of a tape, the deepest that can be named."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in sorted({*recorded, *now}):
            inner = f"{field}.{key}" if field else str(key)
            yield from differences(recorded.get(key), now.get(key), inner)
    elif not _alike(recorded, now):
        yield Change(field=field, recorded=recorded, now=now)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and not any(
            True for a, b in zip(one, other, strict=True) for _ in differences(a, b)
        )
    if isinstance(one, int | float) and isinstance(other, int | float):
        return isinstance(one, bool) == isinstance(other, bool) and math.isclose(one, other, rel_tol=CLOSE)
    return bool(one == other)
