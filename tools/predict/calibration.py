"""What earlier launches on this host teach the predictor about the configurations that come after them."""

import math

from pydantic import Field

from moeagent.memory.records import Record
from moeagent.tools.predict.settings import EngineSettings


class Calibration(Record):
    """Corrections from measured launches; the empty one changes nothing."""

    weights_offsets: dict[str, float] = Field(default_factory=dict)
    """Measured minus predicted weights, GiB per GPU, by layout; "" is the latest of any layout."""
    free_gib: float | None = None
    """SGLang: memory free before the load, from fraction, weights and pool of an earlier launch."""
    overhead_gib: float | None = None
    """vLLM: what its budget spent beside weights and pool."""
    headroom_shifts: dict[str, float] = Field(default_factory=dict)
    """Added to the predicted head-room under load, by layout: who survived or died says where zero is.

    "" holds for layouts that were never launched; only a survivor sets it.
    """
    speed: dict[int, float] = Field(default_factory=dict)
    """Measured over predicted output tok/s by concurrency, of the latest measured launches."""
    ttft: dict[int, float] = Field(default_factory=dict)
    """Measured over predicted TTFT by concurrency."""

    def weights_offset(self, settings: EngineSettings) -> float | None:
        """Correction for this layout, else for any; None when no launch printed its weights."""
        return self.weights_offsets.get(layout_key(settings), self.weights_offsets.get(""))

    def headroom_shift(self, settings: EngineSettings) -> float:
        """Correction of the head-room under load for this layout, GiB."""
        return self.headroom_shifts.get(layout_key(settings), self.headroom_shifts.get("", 0.0))


def layout_key(settings: EngineSettings) -> str:
    """Names what the weights of a configuration depend on beside the model."""
    return f"tp{settings.tp}ep{settings.expert_ep}dp{settings.dp}pp{settings.pp}{settings.a2a}"


def factor_at(factors: dict[int, float], concurrency: int) -> float | None:
    """The correction at a concurrency: between measured ones, else the nearest; None without any."""
    if not factors:
        return None
    points = sorted(factors)
    low = max((p for p in points if p <= concurrency), default=points[0])
    high = min((p for p in points if p >= concurrency), default=points[-1])
    if low >= high:
        return factors[low if low in factors else high]
    part = math.log(concurrency / low) / math.log(high / low)
    return factors[low] + (factors[high] - factors[low]) * part
