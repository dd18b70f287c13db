"""The step that a run is in: since when, for how long by the steps before it, and what was measured in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from moeagent.agent.show.moments import Moment, moments
from moeagent.agent.show.waiting import effect_text
from moeagent.memory.pulse import Pulse, read_pulse
from moeagent.memory.records import Rung
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Entry, TapeFile


@dataclass(frozen=True)
class UnderWay:
    """The request that waits for its answer."""

    doing: str
    began_at: float
    """Seconds since the epoch: when the request was written."""
    expected_s: float | None
    """Median of the like steps of this run; None for the first of its kind."""
    launch: str
    hypothesis: str | None
    """Of the launch; None for a baseline launch or no launch."""
    concurrency: int | None
    """Of the rung that is filling up."""
    rungs: tuple[Rung, ...]
    """What this launch has measured so far."""
    pulse: Pulse | None

    def to_json(self, now: float) -> dict[str, Any]:
        """One object for programs."""
        pulse = self.pulse
        return {
            "elapsed_s": round(max(0.0, now - self.began_at), 1),
            "expected_s": None if self.expected_s is None else round(self.expected_s, 1),
            "launch": self.launch or None,
            "hypothesis": self.hypothesis,
            "concurrency": self.concurrency,
            "measured": [
                {"concurrency": r.concurrency, "output_tok_s": r.output_tok_s, "failed": r.failed}
                for r in self.rungs
            ],
            "progress": pulse.model_dump(mode="json", exclude={"tape_bytes"}) if pulse else None,
        }


def under_way(folder: RunFolder, tape: TapeFile) -> UnderWay | None:
    """What the last line of the tape waits for; None where it waits for nothing."""
    last = tape.entries[-1]
    if last.type != "request":
        return None
    launch = str(last.body["request"].get("launch", ""))
    return UnderWay(
        doing=effect_text(last),
        began_at=folder.tape.stat().st_mtime,
        expected_s=_expected(tape, last),
        launch=launch,
        hypothesis=_hypothesis(tape, launch),
        concurrency=_concurrency(last),
        rungs=_rungs(tape, launch),
        pulse=read_pulse(folder.path, folder.tape.stat().st_size),
    )


def _concurrency(entry: Entry) -> int | None:
    spec = entry.body["request"].get("spec", {})
    return spec.get("concurrency") if entry.kind == "load" else None


def _expected(tape: TapeFile, now: Entry) -> float | None:
    asked = {e.line_no: _concurrency(e) for e in tape.entries if e.kind == "load"}
    past: Sequence[Moment] = [m for m in moments(tape)[:-1] if m.name == now.kind and m.took_s]
    alike = [m.took_s for m in past if asked.get(m.line) == _concurrency(now)]
    return median(alike) if alike else None


def _rungs(tape: TapeFile, launch: str) -> tuple[Rung, ...]:
    """The last measurement of each concurrency of a launch that is not recorded yet."""
    found: dict[int, Rung] = {}
    for entry, following in zip(tape.entries, tape.entries[1:], strict=False):
        if (
            entry.kind == "load"
            and entry.body["request"]["launch"] == launch
            and "response" in following.body
        ):
            rung = Rung.model_validate(following.body["response"]["rung"])
            found[rung.concurrency] = rung
    return tuple(found[concurrency] for concurrency in sorted(found))


def _hypothesis(tape: TapeFile, launch: str) -> str | None:
    """The hypothesis whose configuration this launch carries: the last one, where it has that change."""
    starts = [e for e in tape.entries if e.kind == "start" and e.body["request"]["launch"] == launch]
    ideas = [e.body["value"]["id"] for e in tape.entries if e.type == "decision" and e.kind == "hypothesis"]
    verdicts = {
        e.body["value"]["hypothesis"] for e in tape.entries if e.type == "decision" and e.kind == "verdict"
    }
    return ideas[-1] if starts and ideas and ideas[-1] not in verdicts else None
