"""The step of a run under way: since when, the ladder of its launch filling up, what moves in it."""

import time
from dataclasses import dataclass

from moeagent.agent.serve.seen import Seen
from moeagent.agent.show.html.table import Cell
from moeagent.agent.show.lines import rung_text
from moeagent.agent.show.text import rate, seconds
from moeagent.agent.show.under_way import UnderWay
from moeagent.memory.pulse import Pulse, read_pulse
from moeagent.memory.records import Rung

ALMOST = 0.99
"""A rung that takes longer than those before it is shown as nearly done, never as done."""


@dataclass(frozen=True)
class Now:
    """What the page of a run says of this moment."""

    doing: str
    times: str
    launch: str
    """Whose rungs these are; empty outside a launch."""
    rungs: tuple[tuple[int, Cell], ...]
    """Each concurrency with its figure, `now`, or a dash."""
    share: float | None
    """Of the rung that is filling up, 0 to 1; None where nobody knows."""
    progress: str
    log: str
    """The last line of interest of the server's log."""


def now(seen: Seen) -> Now | None:
    """The present step; None for a run that nobody works on."""
    if seen.standing is None or not seen.live:
        return None
    step, size = seen.standing.step, seen.folder.tape.stat()
    elapsed = max(0.0, time.time() - (step.began_at if step else size.st_mtime))
    if step is None:
        return Now(seen.standing.doing, seconds(elapsed), "", (), None, "", "")
    pulse = read_pulse(seen.folder.path, size.st_size)
    share, progress = _filling(step, pulse, elapsed) if step.concurrency else (None, "")
    about = f" of about {seconds(step.expected_s)}" if step.expected_s else ""
    return Now(
        doing=seen.standing.doing,
        times=f"{seconds(elapsed)}{about}",
        launch=f"{step.launch} for {step.hypothesis or 'the baseline'}" if step.launch else "",
        rungs=_rungs(seen, step) if step.launch else (),
        share=share,
        progress=progress,
        log=pulse.text if pulse and not pulse.total else "",
    )


def _rungs(seen: Seen, step: UnderWay) -> tuple[tuple[int, Cell], ...]:
    done = {rung.concurrency: rung for rung in step.rungs}
    ladder = seen.view.ladder if seen.view else ()
    planned = sorted({*ladder, *done, *([step.concurrency] if step.concurrency else [])})
    return tuple((c, _rung(done.get(c), filling=c == step.concurrency)) for c in planned)


def _rung(rung: Rung | None, *, filling: bool) -> Cell:
    if filling:
        return Cell("now")
    if rung is None:
        return Cell("-", "quiet")
    return Cell(rung_text(rung), "good" if rung.usable else "bad")


def _filling(step: UnderWay, pulse: Pulse | None, elapsed: float) -> tuple[float | None, str]:
    """How far the rung is: by its requests, else by the time that such a rung takes."""
    if pulse and pulse.total:
        told = f"{pulse.done} of {pulse.total} requests, {rate(pulse.rate)} tok/s"
        return pulse.done / pulse.total, told
    if step.expected_s:
        return min(ALMOST, elapsed / step.expected_s), "by the time that it took before"
    return None, "how long it takes is not known yet"
