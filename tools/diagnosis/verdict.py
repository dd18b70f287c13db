"""What a log without a provable cause says: a healthy server, a hang, or a process that vanished."""

import re
from dataclasses import dataclass

from moeagent.tools.diagnosis.evidence import Evidence
from moeagent.tools.diagnosis.lines import Line
from moeagent.tools.diagnosis.outputs import degenerate_answer

_FAULT = re.compile(r"(?:HTTP/\d(?:\.\d)?\"|POST \S+ \S+) 5\d\d")
STALL_S = 120.0
"""Seconds without progress, while stamps go on, that make a hang; loading prints several lines a minute."""


@dataclass(frozen=True)
class Verdict:
    """A class with its root line and how sure it is."""

    failure_class: str
    root: Line | None
    confidence: float
    reason: str


def judge_without_cause(evidence: Evidence, alive: bool | None, noise: list[int]) -> Verdict:
    """Healthy, hung or gone; `noise` holds the numbers of suspicious lines that were set aside."""
    garbled = degenerate_answer(evidence.log)
    if garbled is not None:
        return Verdict("runtime.wrong_output", garbled, 0.7, "an answer only repeats one piece of text")
    asked = evidence.marks("asked_to_stop")
    ended = [line for line in evidence.marks("ended") if not asked or line.no < asked[0].no]
    proof = health_line(evidence, noise)
    if proof is not None and asked and not ended:
        return Verdict("benign.none", proof, 0.9, "it served until it was asked to stop")
    stall = _stalled(evidence)
    failing = _failing_requests(evidence)
    if failing and not ended:
        return Verdict(
            "runtime.engine_bug", failing[0], 0.35, "requests failed inside it and it did not say why"
        )
    if proof is not None and not ended and stall is None and alive is not False:
        return Verdict("benign.none", proof, 0.9, "it became ready and what follows is noise")
    if ended:
        return _gone(evidence, ended)
    if stall is not None or alive is True:
        root = stall or last_progress(evidence)
        return Verdict(
            "runtime.hang", root, 0.6 if stall else 0.5, "progress stopped and nothing was reported"
        )
    root = last_progress(evidence)
    return Verdict("runtime.silent_exit", root, 0.4, "the log stops and gives no reason")


def _failing_requests(evidence: Evidence) -> list[Line]:
    """Requests that the ready server answered with a fault of its own (5xx)."""
    ready = evidence.marks("ready")
    since = ready[0].no if ready else 0
    return [line for line in evidence.marks("failed_request") if line.no > since and _FAULT.search(line.body)]


def health_line(evidence: Evidence, noise: list[int]) -> Line | None:
    """The line that proves health: the ready line, or the last success after the last suspicious line."""
    ready, served = evidence.marks("ready"), evidence.marks("served")
    last_noise = max(noise, default=0)
    clear = [line for line in ready if line.no > last_noise]
    if clear:
        return clear[0]
    if served:
        return served[-1]
    return ready[-1] if ready else None


def last_progress(evidence: Evidence) -> Line | None:
    """The last line by which the engine showed progress, else the last line that is no noise."""
    progress = [hit.line for hit in evidence.hits if hit.signature.kind == "health"]
    if progress:
        return progress[-1]
    told = {hit.line.no for hit in evidence.hits}
    lines = [line for line in evidence.log.lines if line.body.strip()]
    return next((line for line in reversed(lines) if line.no not in told), lines[-1] if lines else None)


def _stalled(evidence: Evidence) -> Line | None:
    served = evidence.marks("served")
    after = served[-1].no if served else 0
    reports = [line for line in evidence.marks("stalled") if line.no > after]
    if reports:
        return reports[0]
    gap = evidence.clock_gap
    return last_progress(evidence) if gap is not None and gap[1] >= STALL_S else None


def _gone(evidence: Evidence, ended: list[Line]) -> Verdict:
    killed = [line for line in ended if "Killed" in line.body or "SIGKILL" in line.body or "137" in line.body]
    reported = [hit for hit in evidence.hits if hit.signature.id in ("sglang-sigquit", "sglang-kill-tree")]
    if killed and not reported:
        pressed = evidence.stage_at(killed[0].no) == "load"
        name = "host.oom_killer" if pressed else "runtime.silent_exit"
        return Verdict(name, killed[0], 0.5, "it was killed from outside without an error of its own")
    above = [line for line in evidence.log.upwards(ended[0].no) if line.body.strip()]
    root = above[0] if above else ended[0]
    return Verdict("runtime.silent_exit", root, 0.4, "it ended and the log gives no reason")
