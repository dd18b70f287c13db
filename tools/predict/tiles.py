"""Which CUTLASS and Triton tiles fit a GPU's shared memory."""

from typing import Literal

from moeagent.memory.records import Record
from moeagent.tools.predict import tables
from moeagent.tools.predict.tables.schema import TileRules

_SMALL_TILE = 128
TileVerdict = Literal[
    "fits", "fails at auto, fits with 2 stages", "does not fit", "fits, but exceeds the registers"
]


class TileFit(Record):
    """One tile on one GPU, bytes per thread block."""

    dtype: str
    m: int
    n: int
    k: int
    stage_bytes: int
    auto_stages: int
    """What CUTLASS chooses by itself."""
    needed_bytes: int
    verdict: TileVerdict


def tile_fit(dtype: str, m: int, n: int, k: int, capacity_bytes: int) -> TileFit:
    """Whether an M x N x K tile of this type runs. Raises KeyError for a type that is not in the table."""
    rules = tables.tile_rules()
    kind = rules.dtype[dtype]
    elements = (m + n) * k
    stage = elements * kind.bits // 8 + (elements // kind.scale_vector if kind.scale_vector else 0)
    small = m <= _SMALL_TILE and n <= _SMALL_TILE
    epilogue = rules.epilogue_small_bytes if small else rules.epilogue_large_bytes
    auto = max((capacity_bytes - epilogue) // stage, 0)
    needed = auto * stage + epilogue + rules.pipeline_bytes
    least = rules.min_stages * stage + epilogue + rules.pipeline_bytes
    return TileFit(
        dtype=dtype,
        m=m,
        n=n,
        k=k,
        stage_bytes=stage,
        auto_stages=auto,
        needed_bytes=needed,
        verdict=_verdict(rules, m * n, auto, needed, least, capacity_bytes),
    )


def tile_table(capacity_bytes: int, dtype: str | None = None) -> tuple[TileFit, ...]:
    """Every tile that CUTLASS offers, for a card with this much shared memory per block."""
    offered = tables.tile_rules().offered
    kinds = offered if dtype is None else {dtype: offered[dtype]}
    return tuple(
        tile_fit(kind, m, n, k, capacity_bytes) for kind, tiles in kinds.items() for m, n, k in tiles
    )


def triton_too_large(capacity_bytes: int) -> tuple[str, ...]:
    """Triton kernels whose default blocks need more shared memory than the card has."""
    found = (t for t in tables.tile_rules().triton if t.bytes > capacity_bytes)
    return tuple(f"Triton {t.name}: {t.bytes:,} B > {capacity_bytes:,} B ({t.source})" for t in found)


def _verdict(rules: TileRules, area: int, auto: int, needed: int, least: int, capacity: int) -> TileVerdict:
    if auto < rules.min_stages:
        return "does not fit"
    if needed > capacity:
        return "fails at auto, fits with 2 stages" if least <= capacity else "does not fit"
    if area * rules.accumulator_bytes >= rules.register_file_bytes:
        return "fits, but exceeds the registers"
    return "fits"
