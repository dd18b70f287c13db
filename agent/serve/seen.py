"""One run as the page sees it: read from its tape, whatever state it is in."""

import time
from dataclasses import dataclass

from pydantic import ValidationError

from moeagent.agent.show.status import Standing, standing
from moeagent.agent.show.text import effect_text
from moeagent.memory.errors import LoopVersionError, MoeagentError
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView
from moeagent.memory.tape.lines import scan_tape

BEAT_S = 2


@dataclass(frozen=True)
class Seen:
    """One run as it was at one moment."""

    folder: RunFolder
    stamp: str
    """Another stamp, another run."""
    view: RunView | None
    """None where nothing of the tape can be read; with a problem, what is sound of it."""
    standing: Standing | None
    """None where the tape is damaged."""
    problem: str = ""

    @property
    def live(self) -> bool:
        """Whether a process works on it."""
        return self.standing is not None and bool(self.standing.worker) and not self.standing.ended

    @property
    def status(self) -> str:
        """In a word or two."""
        return self.standing.status if self.standing else "damaged"

    @property
    def moment(self) -> str:
        """The stamp, and for a run under way the time: its step goes on though the tape does not."""
        return f"{self.stamp}-{int(time.time() / BEAT_S)}" if self.live else self.stamp


@dataclass(frozen=True)
class Row:
    """One line about a run."""

    run: str
    status: str
    problem: str
    begun: str = ""
    """ISO time; empty where the tape does not tell."""
    goal: str = ""
    engine: str = ""
    model: str = ""
    simulated: bool = False
    hypotheses: int = 0
    best: str = ""


def row_of(seen: Seen) -> Row:
    """What the list shows of a run."""
    view = seen.view
    if view is None:
        return Row(run=seen.folder.id, status=seen.status, problem=seen.problem)
    settings, facts = view.header["settings"], view.ledger.facts
    return Row(
        run=seen.folder.id,
        status=seen.status,
        problem=seen.problem,
        begun=str(view.header.get("created_at", "")),
        goal=view.goal,
        engine=settings["engine"]["name"],
        model=facts.scope.model if facts else settings["model"],
        simulated=view.simulated,
        hypotheses=len(view.ledger.hypotheses),
        best=_best(view),
    )


def _best(view: RunView) -> str:
    if view.best is None:
        return "nothing measured yet"
    who = (view.ledger.incumbent.hypothesis if view.ledger.incumbent else None) or "the baseline"
    return f"{who} {effect_text(view.gain)}" if view.gain else who


def read(folder: RunFolder, stamp: str) -> Seen:
    """A run whatever state it is in: what cannot be read is told, not raised."""
    try:
        now = standing(folder)
    except LoopVersionError as error:
        return Seen(folder, stamp, None, None, str(error))
    except MoeagentError as error:
        return Seen(folder, stamp, _sound_part(folder), None, str(error))
    except (KeyError, ValidationError):
        told = "its tape is sound, but holds what this version does not know: another version wrote it"
        return Seen(folder, stamp, None, None, told)
    return Seen(folder, stamp, now.view, now)


def _sound_part(folder: RunFolder) -> RunView | None:
    try:
        tape, _ = scan_tape(folder.tape)
        return RunView.of_tape(tape)
    except (MoeagentError, KeyError, ValidationError):
        return None
