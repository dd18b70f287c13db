"""How much of a rung a server stood still for: kernels compiled on first use, and what else halts streams.

A step of an engine serves many streams, so a moment in which none of them receives anything is as long as one
step. Where all requests are alike, each wave of a closed loop has much the same longest step: what another
wave has beyond the shortest of these is a stall. On one H200 four of seventeen rungs of vLLM stood still for
8 to 31 % of their time, in silence: its log names a kernel only the first time that it is compiled.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

Answer = dict[str, Any]
ALIKE = 2.0
"""The longest request over the shortest, in tokens, up to which all count as alike."""
SHORTEST_US = 100_000
"""What a scheduler or a garbage collection halts a server for is no stall; compiling takes longer."""
DIGITS = 4


def stalled_share(answers: Sequence[Answer], concurrency: int, *, closed_loop: bool) -> float | None:
    """Part of the rung, 0..1, that stalls took; None where requests differ, or with less than two waves."""
    complete = sorted((a for a in answers if not a["kind"] and a["gaps"]), key=lambda a: a["send"])
    if not closed_loop or len(complete) < max(2, 2 * concurrency) or not _alike(complete):
        return None
    begins = [complete[i]["send"] for i in range(0, len(complete) - concurrency + 1, concurrency)]
    longest = _longest_silences(complete, begins)
    window = max(a["send"] + sum(a["gaps"]) for a in complete) - begins[0]
    stalls = [x - min(longest) for x in longest if x - min(longest) >= SHORTEST_US]
    return round(sum(stalls) / window, DIGITS) if window > 0 else None


def _alike(complete: Sequence[Answer]) -> bool:
    sizes = zip(*((a["asked"], a["prompt"] or 1) for a in complete), strict=True)
    return all(max(column) <= ALIKE * min(column) for column in sizes)


def _longest_silences(complete: Sequence[Answer], begins: Sequence[int]) -> list[int]:
    """For each wave, the longest time in microseconds between two arrivals on any stream."""
    stamps = sorted(s for a in complete for s in list(accumulate(a["gaps"], initial=a["send"]))[1:])
    longest = [0] * len(begins)
    wave = 0
    for before, after in pairwise([begins[0], *stamps]):
        while wave + 1 < len(begins) and before >= begins[wave + 1]:
            wave += 1
        longest[wave] = max(longest[wave], after - before)
    return longest
