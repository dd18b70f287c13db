"""Power, clocks and energy of the measured rungs, the same words in every output."""

from collections.abc import Sequence

from moeagent.memory.records import GpuSamples, Launch, Rung

HEAD = (
    "launch", "concurrency", "power W, mean / most", "J per token", "SM MHz, mean / least",
    "memory MHz", "in use %", "memory GiB", "hottest C", "clocks held by",
)  # fmt: skip


def power_rows(launches: Sequence[Launch]) -> list[list[str]]:
    """A row for each rung whose GPUs were sampled, as HEAD names its cells."""
    return [
        [launch.id, str(rung.concurrency), *_cells(rung, rung.gpu)]
        for launch in launches
        for rung in launch.rungs
        if rung.gpu is not None
    ]


def power_sentence(rung: Rung) -> str:
    """The GPUs under this rung in one line; empty when they were not sampled."""
    if rung.gpu is None:
        return ""
    per_token = f", {joules(rung)} J per token" if rung.energy_per_token_j is not None else ""
    watts = _number([rung.gpu.power_w])
    clock = _number([_mean(rung.gpu, "sm_mhz")])
    held = f", held by {held_text(rung.gpu)}" if held_text(rung.gpu) != "-" else ""
    return f"GPUs at {rung.concurrency}: {watts} W{per_token}, SM clock {clock} MHz{held}"


def joules(rung: Rung) -> str:
    """Energy of one output token, or a dash."""
    value = rung.energy_per_token_j
    return "-" if value is None else f"{value:.3g}"


def held_text(samples: GpuSamples) -> str:
    """What held the clocks down, with the largest share of the samples on one GPU; a dash for nothing."""
    shares: dict[str, float] = {}
    for load in samples.gpus:
        for name, share in load.held_by.items():
            shares[name] = max(share, shares.get(name, 0.0))
    return ", ".join(f"{name} {share:.0%}" for name, share in sorted(shares.items())) or "-"


def _cells(rung: Rung, samples: GpuSamples) -> list[str]:
    memory = _most(samples, "memory_mib")
    return [
        _number([samples.power_w, samples.power_max_w]),
        joules(rung),
        _number([_mean(samples, "sm_mhz"), _least(samples, "sm_mhz_min")]),
        _number([_mean(samples, "mem_mhz")]),
        _number([_mean(samples, "use_percent")]),
        "-" if memory is None else f"{memory / 1024:.1f}",
        _number([_most(samples, "celsius")]),
        held_text(samples),
    ]


def _values(samples: GpuSamples, name: str) -> list[float]:
    found = (getattr(load, name) for load in samples.gpus)
    return [value for value in found if value is not None]


def _mean(samples: GpuSamples, name: str) -> float | None:
    known = _values(samples, name)
    return sum(known) / len(known) if known else None


def _least(samples: GpuSamples, name: str) -> float | None:
    return min(_values(samples, name), default=None)


def _most(samples: GpuSamples, name: str) -> float | None:
    return max(_values(samples, name), default=None)


def _number(values: Sequence[float | None]) -> str:
    return " / ".join("-" if value is None else f"{value:,.0f}" for value in values)
