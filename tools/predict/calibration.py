"""What earlier launches on this host teach the predictor about the configurations that come after them."""

import math

from pydantic import Field

from moeagent.memory.records import Record
from moeagent.tools.predict.settings import EngineSettings

MOST_MISSED = 2.0
"""The formulas of speculation are not taken to miss by more."""
LENT_SHARE = 0.5
"""Of a correction of the weights, for layouts never launched: it may be due in full or not at all."""


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
    drafted: dict[int, float] = Field(default_factory=dict)
    """Measured over predicted output tok/s of the latest launch that speculated, by concurrency."""
    drafts: int = 0
    """Drafted tokens of each step of that launch."""
    graphs_per_draft: float | None = None
    """What each drafted token adds to the CUDA graphs, as a share of those without speculation."""
    ttft: dict[int, float] = Field(default_factory=dict)
    """Measured over predicted TTFT by concurrency."""

    def speculation(self, settings: EngineSettings, concurrency: int) -> float:
        """Correction of the speed of speculation; 1 without it, and before a launch that speculates.

        Where more is accepted, or verifying costs less, than the formulas say, longer drafts feel it more:
        half of the miss is taken to be of that kind.
        """
        missed = factor_at(self.drafted, concurrency)
        if missed is None or settings.draft_tokens == 1:
            return 1.0
        longer = (settings.draft_tokens - 1) / self.drafts
        return float(min(max(missed ** ((1 + longer) / 2), 1 / MOST_MISSED), MOST_MISSED))

    def weights_offset(self, settings: EngineSettings) -> float | None:
        """Correction for this layout, else what any lends to it; None when no launch printed its weights."""
        own, lent = self.weights_offsets.get(layout_key(settings)), self.weights_offsets.get("")
        return own if own is not None or lent is None else LENT_SHARE * lent

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
