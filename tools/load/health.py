"""Does the client distort what it measures? Thresholds and the rule that applies them.

The thresholds are those that separated clean from distorted runs of eleven clients against a server with
known send times (CPU use, dispatch lag, events per read, achieved load).
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from moeagent.memory.records import ClientHealth

Answer = dict[str, Any]

MAX_CORE_USE = 0.7
MAX_SEND_LATE_SHARE = 0.05
"""Of the median TTFT."""
MIN_SEND_LATE_MS = 1.0
"""Lateness below this never counts: event-loop timers and schedulers are no finer."""
MAX_CROWDED = 0.02
MAX_LAG_SHARE = 0.5
"""Of the median gap between events: beyond it the tail of ITL is the client's."""
CROWDED_LAG_SHARE = 0.25
"""Of the same gap: from here on events that were read together were the client's to read earlier."""
MIN_LAG_MS = 2.0
"""Lag below this never counts: event-loop timers are a millisecond coarse, and as late on an idle machine."""
MIN_ACHIEVED = 0.97


def client_health(
    parts: Sequence[dict[str, Any]], answers: Sequence[Answer], plan: dict[str, Any]
) -> ClientHealth:
    """What the client says about itself, and whether its figures may be used."""
    core = max(((p["cpu_s"] + p["run_queue_s"]) / p["wall_s"] for p in parts if p["wall_s"] > 0), default=0.0)
    lag = max((p["lag_ms"] for p in parts), default=0.0)
    turns = turnarounds_ms(answers)
    late = tail(lateness_ms(answers) if plan.get("rate") is not None else turns)
    crowded = crowded_share(parts, answers)
    achieved = achieved_share(answers, turns, plan)
    reasons = distortions(core, lag, late, crowded, achieved, answers)
    return ClientHealth(
        cpu_s=round(sum(p["cpu_s"] for p in parts), 4),
        loop_lag_ms=round(lag, 4),
        valid=not reasons,
        why="; ".join(reasons),
        core_use=round(core, 4),
        send_late_ms=late,
        crowded_reads=round(crowded, 6),
        achieved=round(achieved, 6),
        processes=max(1, len(parts)),
        loop=parts[0]["loop"] if parts else None,
        spoils=("all" if achieved < MIN_ACHIEVED else "latency") if reasons else "",
    )


def distortions(
    core: float, lag_ms: float, late_ms: float, crowded: float, achieved: float, answers: Sequence[Answer]
) -> list[str]:
    """Each way in which the client distorted the rung; empty when it did not."""
    ttft = median([a["gaps"][0] / 1000 for a in answers if a["gaps"]])
    gap = median([g / 1000 for a in answers[:200] for g in a["gaps"][1:]])
    lagging = lag_ms > max(MIN_LAG_MS, MAX_LAG_SHARE * gap)
    slow_reader = lag_ms > max(MIN_LAG_MS, CROWDED_LAG_SHARE * gap)
    found = []
    if core > MAX_CORE_USE:
        found.append(f"the client needs {core:.0%} of a core (limit {MAX_CORE_USE:.0%}): use more processes")
    if ttft and late_ms > max(MIN_SEND_LATE_MS, MAX_SEND_LATE_SHARE * ttft):
        found.append(
            f"sends are {late_ms:.1f} ms late (limit {MAX_SEND_LATE_SHARE:.0%} of TTFT {ttft:.1f} ms)"
        )
    if lagging and gap:
        found.append(
            f"the client's event loop lags {lag_ms:.1f} ms (limit {MAX_LAG_SHARE:.0%} of ITL {gap:.1f} ms)"
        )
    # A tunnel or proxy may join events too; only together with lag is it the client that reads too late.
    if crowded > MAX_CROWDED and slow_reader:
        found.append(f"{crowded:.1%} of events were read late, together (limit {MAX_CROWDED:.0%})")
    if achieved < MIN_ACHIEVED:
        found.append(
            f"the client kept {achieved:.1%} of the concurrency in flight (limit {MIN_ACHIEVED:.0%})"
        )
    return found


def turnarounds_ms(answers: Sequence[Answer]) -> list[float]:
    """Closed loop: time from an answer's end to the next send on the same kept connection."""
    slots: dict[tuple[int, int], list[Answer]] = defaultdict(list)
    for answer in answers:
        slots[answer["slot"], answer.get("worker", 0)].append(answer)
    waits = []
    for sent in slots.values():
        for before, after in pairwise(sent):
            if not before["kind"] and not after.get("fresh"):
                waits.append((after["send"] - before["end"]) / 1000)
    return waits


def lateness_ms(answers: Sequence[Answer]) -> list[float]:
    """Open loop: actual minus intended send."""
    return [(a["send"] - a["due"]) / 1000 for a in answers if a["due"] is not None]


def achieved_share(answers: Sequence[Answer], turns: Sequence[float], plan: dict[str, Any]) -> float:
    """Part of the slots' time between first and last send that did not go into turning round."""
    if not answers or plan.get("rate") is not None:
        return 1.0
    sends = [a["send"] for a in answers]
    slot_ms = (max(sends) - min(sends)) / 1000 * plan["concurrency"]
    return 1.0 - sum(turns) / slot_ms if slot_ms > 0 and turns else 1.0


def crowded_share(parts: Sequence[dict[str, Any]], answers: Sequence[Answer]) -> float:
    """Share of events with text that were read together with an earlier one."""
    events = sum(len(a["gaps"]) for a in answers)
    crowded = sum(a["crowded"] for a in answers) + sum(p["crowded_cut"] for p in parts)
    return crowded / events if events else 0.0


def tail(samples: Sequence[float]) -> float:
    """The 99th percentile, nearest rank; 0 without samples."""
    return sorted(samples)[int((len(samples) - 1) * 0.99)] if samples else 0.0


def median(samples: Sequence[float]) -> float:
    """The middle sample; 0 without samples."""
    return sorted(samples)[len(samples) // 2] if samples else 0.0
