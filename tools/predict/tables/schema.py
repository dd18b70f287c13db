"""The shape of every table in this folder; a table that does not fit is an error at load."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from moeagent.memory.records import Record


class GpuSpec(Record):
    """One GPU model. Rates are dense TFLOP/s; bandwidth is the data sheet's, in TB/s."""

    name: str
    match: tuple[tuple[str, ...], ...]
    sm: str
    memory_mib: PositiveInt
    bandwidth_tb_s: PositiveFloat
    tflops: dict[Literal["bfloat16", "fp8", "fp4"], PositiveFloat]
    smem_block_bytes: PositiveInt
    kernels: str
    """Key of the measured lines in kernels.toml."""
    fabric: str
    """The usual link between such cards in one host."""
    power_w: PositiveFloat
    source: str


class KernelReference(Record):
    """The card on which a set of kernels was measured."""

    kernels: str
    bandwidth_tb_s: PositiveFloat
    tflops: dict[Literal["bfloat16", "fp8", "fp4"], PositiveFloat]


class GemmLine(Record):
    """us = t0 + MB/tb_s + GFLOP/tflops*1e3 + act*MB_activations, fitted to measured kernels."""

    kernels: str
    dtype: str
    t0_us: float
    tb_s: PositiveFloat
    tflops: PositiveFloat
    act_us_per_mb: float
    fit_error: float
    rows: int


class MoeLine(GemmLine):
    """As GemmLine, with a cost per expert that is hit, for one engine's kernels."""

    engine: str
    expert_us: float


class Fabric(Record):
    """All-reduce latency in microseconds by bytes, one row of values per number of GPUs."""

    name: str
    kind: Literal["pcie", "nvlink"]
    source: str
    bytes: tuple[PositiveInt, ...]
    allreduce_us: dict[int, tuple[PositiveFloat, ...]]


class WeightFormat(Record):
    """How a quantised weight is stored, and which measured kernels run it, in order of preference."""

    name: str
    bytes_per_param: PositiveFloat
    kernels: tuple[str, ...]
    rate: Literal["bfloat16", "fp8", "fp4"]
    source: str


class KvFormat(Record):
    """Bytes of one stored KV element."""

    name: str
    bytes: PositiveFloat
    aliases: tuple[str, ...]


class ArchitectureRule(Record):
    """What fields of one model class mean where their names do not say it."""

    match: tuple[str, ...]
    expert_inter_field: str | None = None
    dense_inter_field: str | None = None
    shared_inter_field: str | None = None
    attention_gate: bool = False
    expert_matrices: PositiveInt = 3


class Refusal(Record):
    """A model class, or any class with a certain field, that the formulas do not describe."""

    match: str | None = None
    field: str | None = None
    why: str

    def applies(self, classes: Sequence[str], fields: Mapping[str, object]) -> bool:
        """True when one of the classes contains the match, or the config sets the field."""
        by_class = self.match is not None and any(self.match in c for c in classes)
        return by_class or (self.field is not None and bool(fields.get(self.field)))


class Architectures(Record):
    """Which model classes are understood."""

    known: tuple[str, ...]
    refuse: tuple[Refusal, ...]
    rule: tuple[ArchitectureRule, ...]


class FlagMap(Record):
    """A flag and the settings field that it sets."""

    names: tuple[str, ...]
    field: str | None = None
    json_fields: dict[str, str] = Field(default_factory=dict, alias="json")
    """For a flag whose value is a JSON object: its keys and the fields that they set."""


class NoEffect(Record):
    """A flag that changes no measured figure."""

    name: str
    source: str


class EnvMap(Record):
    """An environment variable whose value selects a variant of the fabric."""

    name: str
    pattern: str
    fabric: Literal["tuned", "oneshot", "no-p2p", "nccl", "ll"]


class MemoryTier(Record):
    """Defaults that the engine derives from the card's capacity."""

    up_to_gib: PositiveFloat
    chunk: PositiveInt
    graph_bs_tp1: int
    graph_bs_tp4: int
    max_running: PositiveInt | None = None


class MemoryRule(Record):
    """How an engine divides the card. The SGLang figures are MiB, as its source has them."""

    rule: Literal["sglang", "vllm", "llamacpp"]
    source: str
    page_size: PositiveInt
    tiers: tuple[MemoryTier, ...]
    default_fraction: float | None = None
    reserve_base_mib: float = 0
    reserve_per_chunk_mib: float = 0
    reserve_per_graph_bs_mib: float = 0
    reserve_per_gpu_mib: float = 0
    reserve_dp_per_graph_bs_mib: float = 0
    reserve_floor_mib: float = 0
    reserve_floor_above_gib: float = 0
    reserve_spec_mib: dict[str, float] = Field(default_factory=dict)
    vision_factor: float = 1
    request_slots_min: int | None = None
    request_slots_max: int | None = None


class EngineMap(Record):
    """One engine's flags, environment and memory rule."""

    source: str
    flags: tuple[FlagMap, ...]
    no_effect: tuple[NoEffect, ...]
    env: tuple[EnvMap, ...]
    memory: MemoryRule


class PriorPoint(Record):
    """Published relative change of output tok/s at one concurrency."""

    concurrency: PositiveInt
    effect: float
    low: float
    high: float


class Prior(Record):
    """The published effect of a flag that no formula describes."""

    engine: str
    flag: str
    value: str | None = None
    fabric: Literal["pcie", "nvlink"] | None = None
    needs_a2a: bool = False
    points: tuple[PriorPoint, ...]
    source: str
    rows: tuple[str, ...] = ()
    """Rows of measurements.csv that the entry rests on."""


class Hazard(Record):
    """A flag that is published to have killed servers, and where."""

    engine: str
    flag: str
    value: str | None = None
    above: float | None = None
    """Applies to numbers above this one only."""
    sm: str | None = None
    """Prefix of the compute capability."""
    experts: str | None = None
    """Weight format of the experts."""
    unless: str | None = None
    """A flag under which what killed them is not there."""
    risk: float = Field(ge=0, le=1)
    stage: str
    why: str
    source: str


class Fitted(Record):
    """A constant of the speed model and the rows that it was set on (empty: none)."""

    value: float
    unit: str
    source: str
    rows: tuple[str, ...] = ()


class TileType(Record):
    """Bits of an element, and elements per scale factor (0: none)."""

    bits: PositiveInt
    scale_vector: int


class TritonKernel(Record):
    """Shared memory that a Triton kernel's default blocks need, bytes."""

    name: str
    bytes: PositiveInt
    source: str


class TileRules(Record):
    """How the shared memory of a CUTLASS tile adds up, and which tiles are offered as (M, N, K)."""

    source: str
    sm: str
    """Prefix of the compute capability that the arithmetic holds for."""
    pipeline_bytes: PositiveInt
    epilogue_small_bytes: PositiveInt
    epilogue_large_bytes: PositiveInt
    min_stages: PositiveInt
    accumulator_bytes: PositiveInt
    register_file_bytes: PositiveInt
    dtype: dict[str, TileType]
    offered: dict[str, tuple[tuple[int, int, int], ...]]
    triton: tuple[TritonKernel, ...]
