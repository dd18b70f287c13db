"""How a run stands, from its tape alone: the same from any terminal."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from moeagent.agent.show.spent import Spent, spent
from moeagent.agent.show.under_way import UnderWay, under_way
from moeagent.agent.show.waiting import effect_text
from moeagent.memory.collector import collector_paused
from moeagent.memory.lock import look
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView
from moeagent.memory.tape.lines import Entry, Json


@dataclass(frozen=True)
class Standing:
    """Where a run is."""

    view: RunView
    spent: Spent
    doing: str
    """What the loop waits for now; empty once the run has ended. After a crash it is where it was cut."""
    worker: str
    """The process that works on the run; empty when none does."""
    limits: Json
    """As they are now: a resume may have raised them."""
    step: UnderWay | None
    """The effect under way; None between two effects, and once the run has ended."""

    @property
    def ended(self) -> bool:
        """Whether the loop is done, for good or until somebody resumes it."""
        return not self.doing

    @property
    def status(self) -> str:
        """As the log says, or under way, or cut off by a crash."""
        if self.ended:
            return self.view.status
        return "under way" if self.worker else "cut off"

    @property
    def budget(self) -> dict[str, tuple[float, float]]:
        """(used, limit) of each limit of the campaign."""
        used = {
            "experiments": self.spent.hypotheses,
            "launches": self.spent.launches,
            "hours": round(self.spent.active_s / 3600, 2),
        }
        return {name: (value, self.limits[name]) for name, value in used.items()}

    def to_json(self) -> dict[str, Any]:
        """One object for programs."""
        view, gain = self.view, self.view.gain
        return {
            "run": view.run,
            "status": self.status,
            "reason": view.reason if self.ended else "",
            "simulated": view.simulated,
            "doing": self.doing,
            "worker": self.worker,
            "step": self.step.to_json(time.time()) if self.step else None,
            "active_s": self.spent.active_s,
            "budget": {name: {"used": used, "limit": limit} for name, (used, limit) in self.budget.items()},
            "best": view.ledger.incumbent.hypothesis if view.ledger.incumbent else None,
            "gain": gain.model_dump(mode="json") if gain else None,
            "hypotheses": [
                {"id": h.id, "statement": h.statement, "verdict": v.kind.value if v else None}
                for h in view.ledger.hypotheses
                for v in (view.ledger.verdict(h.id),)
            ],
        }


def standing(folder: RunFolder) -> Standing:
    """Read the tape as it is now; a line that is being written is left out."""
    with collector_paused():
        tape = folder.read_tape()
        view = RunView.of_tape(tape)
    doing = _doing(tape.entries[-1])
    lock = look(folder.path)
    worker = str(lock.holder) if lock.holder and lock.alive else ""
    used = spent(tape.header, tape.entries, view.ledger)
    return Standing(view, used, doing, worker, _limits(tape.header, tape.entries), under_way(folder, tape))


def _limits(header: Json, entries: Iterable[Entry]) -> Json:
    limits: Json = dict(header["settings"]["limits"])
    for entry in entries:
        if entry.type == "marker":
            limits |= entry.body.get("amend", {}).get("limits", {})
    return limits


def _doing(last: Entry) -> str:
    """What follows the last line of the tape; empty where nothing does."""
    if last.type == "request":
        return effect_text(last)
    concluded = last.type == "decision" and last.body["kind"] == "conclusion"
    stopped = last.type == "marker" and last.body["marker"] != "resume"
    return "" if concluded or stopped else "deciding what comes next"
