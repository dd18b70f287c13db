"""Clocks and temperature of the GPUs before and after a rung: a throttled machine measures something else."""

from collections.abc import Sequence
from typing import NamedTuple

QUERY = (
    "nvidia-smi",
    "--query-gpu=index,clocks.sm,clocks.max.sm,temperature.gpu,power.draw,clocks_throttle_reasons.active",
    "--format=csv,noheader,nounits",
)
"""The old name of the reasons' field: drivers of either generation answer to it."""

SLOWDOWNS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Bits of nvmlClocksEventReasons (NVML API reference) that mean a fault; 0x01 is idle, 0x04 the power cap,
which a loaded GPU reaches in normal work."""


class GpuState(NamedTuple):
    """One GPU at one moment; None where the driver says N/A."""

    gpu: int
    sm_mhz: float | None
    max_sm_mhz: float | None
    celsius: float | None
    watts: float | None
    slowdowns: tuple[str, ...]


def parse_gpu_state(text: str) -> tuple[GpuState, ...]:
    """The states in the output of QUERY; lines of another form are left out."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 6 and fields[0].isdigit():
            clock, top, heat, power = (value(field) for field in fields[1:5])
            found.append(GpuState(int(fields[0]), clock, top, heat, power, reasons(fields[5])))
    return tuple(found)


def value(field: str) -> float | None:
    """A number, or None for [N/A] and its like."""
    try:
        return float(field)
    except ValueError:
        return None


def reasons(field: str) -> tuple[str, ...]:
    """Names of the slowdowns in a hexadecimal mask."""
    try:
        mask = int(field, 16)
    except ValueError:
        return ()
    return tuple(name for bit, name in SLOWDOWNS.items() if mask & bit)


def throttled(states: Sequence[GpuState]) -> str:
    """Why a rung that ended in these states may not be used; empty when no GPU was slowed down."""
    slow = {state.gpu: state.slowdowns for state in states if state.slowdowns}
    return "; ".join(f"GPU {index}: {', '.join(names)}" for index, names in sorted(slow.items()))


def summary(states: Sequence[GpuState]) -> str:
    """Clocks and temperatures in one line; empty without GPUs."""
    clocks = [s.sm_mhz for s in states if s.sm_mhz is not None]
    heat = [s.celsius for s in states if s.celsius is not None]
    parts = [f"SM clock {min(clocks):.0f} to {max(clocks):.0f} MHz"] if clocks else []
    parts += [f"{min(heat):.0f} to {max(heat):.0f} C"] if heat else []
    return ", ".join(parts)
