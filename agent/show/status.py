"""How a run stands, from its tape alone: the same from any terminal."""

import shlex
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType

from moeagent.agent.show.family import parent_text
from moeagent.agent.show.log import best_text, verdict_text
from moeagent.agent.show.plain import Text
from moeagent.agent.show.spent import Spent, spent
from moeagent.agent.show.text import SIMULATED, seconds, verdict_effect_text
from moeagent.agent.show.waiting import effect_text
from moeagent.memory.collector import collector_paused
from moeagent.memory.lock import look
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView
from moeagent.memory.tape.lines import Entry

LAST = 5
"""Hypotheses that are shown."""


@dataclass(frozen=True)
class Standing:
    """Where a run is."""

    view: RunView
    spent: Spent
    doing: str
    """What the loop waits for now; empty once the run has ended. After a crash it is where it was cut."""
    worker: str
    """The process that works on the run; empty when none does."""

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
        limits = self.view.header["settings"]["limits"]
        return {
            "experiments": (self.spent.hypotheses, limits["experiments"]),
            "launches": (self.spent.launches, limits["launches"]),
            "hours": (round(self.spent.active_s / 3600, 2), limits["hours"]),
        }

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
    return Standing(view, spent(tape.header, tape.entries, view.ledger), doing, worker)


def status_text(found: Standing) -> RenderableType:
    """One screen."""
    view = found.view
    parts: list[RenderableType] = [Text(SIMULATED, style="bold yellow")] if view.simulated else []
    reason = f": {view.reason}" if found.ended and view.reason else ""
    parts.append(Text(f"run {view.run}  goal {view.goal}  {found.status}{reason}"))
    if view.parent:
        parts.append(Text(parent_text(view), style="cyan"))
    if found.worker and found.doing:
        parts.append(Text(f"now: {found.doing} ({found.worker})", style="bold blue"))
    elif found.doing:
        parts.append(
            Text(
                f"it was cut while {found.doing}: moeagent resume {shlex.quote(view.run)} goes on",
                style="yellow",
            )
        )
    used = ", ".join(f"{used:g} of {limit:g} {name}" for name, (used, limit) in found.budget.items())
    parts.append(Text(f"spent: {seconds(found.spent.active_s)} at work; {used}"))
    for hypothesis in view.ledger.hypotheses[-LAST:]:
        verdict = view.ledger.verdict(hypothesis.id)
        head = Text.assemble((f"{hypothesis.id} ", "bold"), hypothesis.statement[:200], "\n    ")
        effect = verdict_effect_text(verdict) if verdict else ""
        parts.append(Text.assemble(head, Text(": ").join(verdict_text(verdict).split("\n")), f"  {effect}"))
    return Group(*parts, best_text(view))


def _doing(last: Entry) -> str:
    """What follows the last line of the tape; empty where nothing does."""
    if last.type == "request":
        return effect_text(last)
    concluded = last.type == "decision" and last.body["kind"] == "conclusion"
    stopped = last.type == "marker" and last.body["marker"] != "resume"
    return "" if concluded or stopped else "deciding what comes next"
