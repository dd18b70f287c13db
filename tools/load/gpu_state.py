"""What nvidia-smi says of the GPUs at one moment: power, clocks, use, heat, and what slows them down."""

import tomllib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from moeagent.memory.records import Record

FIELDS = (
    "timestamp", "index", "power.draw", "clocks.sm", "clocks.mem", "utilization.gpu", "memory.used",
    "temperature.gpu",
)  # fmt: skip
REASONS = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
"""The last field: its old name, which drivers of either generation know so far, and its new one."""
STAMP = "%Y/%m/%d %H:%M:%S.%f"


class Reason(Record):
    """Why a GPU runs below its clocks."""

    bit: int
    name: str
    spoils: bool
    """Whether a rung that was measured meanwhile is spoilt."""
    source: str


class GpuState(NamedTuple):
    """One GPU at one moment; None where the driver says N/A."""

    at_s: float
    """Unix time by the host's clock."""
    gpu: int
    watts: float | None
    sm_mhz: float | None
    mem_mhz: float | None
    use_percent: float | None
    """Share of the last period in which a kernel ran."""
    memory_mib: float | None
    celsius: float | None
    reasons: tuple[str, ...] | None


@cache
def throttle_reasons() -> tuple[Reason, ...]:
    """The known reasons."""
    text = files("moeagent.tools.load").joinpath("throttle_reasons.toml").read_text(encoding="utf-8")
    return tuple(Reason.model_validate(entry) for entry in tomllib.loads(text)["reason"])


def queries() -> tuple[str, ...]:
    """Lists of fields for --query-gpu; the first one that a driver accepts is used."""
    return tuple(",".join((*FIELDS, reasons)) for reasons in REASONS)


def parse_gpu_states(text: str) -> tuple[GpuState, ...]:
    """The states in nvidia-smi's lines for one of `queries`, stamped in UTC; other lines are left out."""
    rows = ([field.strip() for field in line.split(",")] for line in text.splitlines())
    return tuple(state for row in rows if (state := _state(row)) is not None)


def _state(row: list[str]) -> GpuState | None:
    if len(row) != len(FIELDS) + 1 or not row[1].isdigit():
        return None
    try:
        at_s = datetime.strptime(row[0], STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    watts, sm, mem, use, memory, heat = (_number(field) for field in row[2:8])
    return GpuState(at_s, int(row[1]), watts, sm, mem, use, memory, heat, _reasons(row[8]))


def _number(field: str) -> float | None:
    """A number, or None for [N/A] and its like."""
    try:
        return float(field)
    except ValueError:
        return None


def _reasons(field: str) -> tuple[str, ...] | None:
    """Names of the reasons in a hexadecimal mask; None when the driver does not say."""
    try:
        mask = int(field, 16)
    except ValueError:
        return None
    return tuple(reason.name for reason in throttle_reasons() if mask & reason.bit)
