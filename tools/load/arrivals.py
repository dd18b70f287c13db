"""When requests arrive in open loop."""

import random
from collections.abc import Sequence
from itertools import accumulate

from moeagent.memory.errors import InputError
from moeagent.tools.load.spec import Arrivals


def poisson(rate: float, count: int, *, seed: str) -> Arrivals:
    """Independent arrivals at a mean rate per second."""
    rng = random.Random(f"{seed}/poisson")
    times = tuple(accumulate(rng.expovariate(rate) for _ in range(count)))
    return Arrivals(kind="poisson", times_s=times, rate=rate)


def constant(rate: float, count: int) -> Arrivals:
    """One arrival every 1/rate seconds."""
    return Arrivals(kind="constant", times_s=tuple(k / rate for k in range(count)), rate=rate)


def burst(rate: float, count: int, *, size: int) -> Arrivals:
    """Groups of `size` arrivals at once, at a mean rate of `rate` per second."""
    return Arrivals(kind="burst", times_s=tuple((k // size) * size / rate for k in range(count)), rate=rate)


def trace(times_s: Sequence[float], *, rate: float | None = None) -> Arrivals:
    """The arrivals of a trace, shifted to start at 0, and stretched to `rate` per second if given."""
    if len(times_s) < 2 or max(times_s) <= min(times_s):
        raise InputError("a trace needs at least two requests at different times: look at its arrival times")
    first, span = min(times_s), max(times_s) - min(times_s)
    own = (len(times_s) - 1) / span
    stretch = own / rate if rate else 1.0
    times = tuple(sorted((t - first) * stretch for t in times_s))
    return Arrivals(kind="trace", times_s=times, rate=rate or own)


def arrivals(kind: str, rate: float, count: int, *, seed: str, burst_size: int = 10) -> Arrivals:
    """Arrivals of a kind that needs no file. Raises InputError for an unknown one."""
    if kind == "poisson":
        return poisson(rate, count, seed=seed)
    if kind == "constant":
        return constant(rate, count)
    if kind == "burst":
        return burst(rate, count, size=burst_size)
    raise InputError(f"--arrival {kind}: choose poisson, constant, burst or trace")
