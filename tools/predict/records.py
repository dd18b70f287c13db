"""What the predictor takes and gives. Sizes are bytes or GiB (2^30) as named, times are ms or us as named."""

from typing import Literal

from pydantic import Field

from moeagent.memory.records import Record
from moeagent.tools.predict.tables.schema import GpuSpec

Limit = Literal[
    "compute",
    "memory bandwidth",
    "kernel launch",
    "kv capacity",
    "batch cap",
    "prefill interference",
    "communication",
    "host cpu",
]


class Unknown(Record):
    """What cannot be predicted, and why; the campaign goes on without it."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} cannot be predicted: {self.why}"


class Machine(Record):
    """The GPUs (or, without any, the CPU cores) that a server may use."""

    gpu_name: str | None
    """As the host prints it; None on a machine without GPUs."""
    gpu_count: int = 0
    memory_mib: int = 0
    """Of each GPU; on a CPU machine its RAM."""
    used_mib: int = 0
    """GPU memory that other processes hold, the fullest card's."""
    spec: GpuSpec | None = None
    """None for a GPU that is not in the table: memory is predicted, speed is not."""
    fabric: str = ""
    cpu_cores: int = 0
    notes: tuple[str, ...] = ()


class AttentionGroup(Record):
    """Layers that share one kind of attention. Parameter counts are per layer."""

    kind: Literal["gqa", "mla", "window", "linear"]
    layers: int
    heads: int
    kv_heads: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    kv_lora: int = 0
    rope_dim: int = 0
    window: int = 0
    index_dim: int = 0
    """Above 0: sparse attention (DSA) with an index of this size beside the KV cache."""
    index_heads: int = 0
    index_topk: int = 0
    sharded_params: int
    """Split over the attention ranks."""
    replicated_params: int = 0
    """Held by every rank, such as MLA's down projections."""
    absorbed_params: int = 0
    """Extra bf16 copies that MLA keeps (w_kc, w_vc), split over the attention ranks."""
    state_bytes: int = 0
    """Recurrent state of one sequence, all heads."""
    gemms: int = 2


class MoeShape(Record):
    """The routed experts and what runs beside them."""

    layers: int
    experts: int
    top_k: int
    inter: int
    matrices: int = 3
    shared_inter: int = 0
    """Sum of the shared experts' intermediate sizes."""


class WeightFormats(Record):
    """Names of weight formats per part of the model."""

    experts: str = "bfloat16"
    shared: str = "bfloat16"
    attention: str = "bfloat16"
    dense: str = "bfloat16"


class ModelShape(Record):
    """A model as far as memory and speed depend on it."""

    name: str
    architecture: str
    layers: int
    hidden: int
    vocab: int
    attention: tuple[AttentionGroup, ...]
    moe: MoeShape | None = None
    dense_layers: int = 0
    dense_inter: int = 0
    dense_matrices: int = 3
    tied_embeddings: bool = False
    mtp_layers: int = 0
    vision_params: int = 0
    vision_layers: int = 0
    vision_hidden: int = 0
    max_context: int
    formats: WeightFormats = Field(default_factory=WeightFormats)
    quant_method: str = ""
    """What the checkpoint calls its quantisation, such as modelopt or awq; empty where it names none."""
    weight_block: int = 0
    """Rows of one quantisation block, which no rank may cut; 0 without blocks."""
    kv_dtype: str = "bfloat16"
    """What "auto" means for this checkpoint."""
    file_gib: float | None = None
    notes: tuple[str, ...] = ()


class MemoryLine(Record):
    """One line of the memory table, GiB per GPU."""

    name: str
    gib: float
    note: str = ""


class MemoryTable(Record):
    """GPU memory by purpose, GiB per GPU, and the verdict."""

    lines: tuple[MemoryLine, ...]
    total_gib: float
    fraction: float
    fraction_source: Literal["flag", "engine default"]
    weights_gib: float
    """Weights and everything else that the engine's weight line covers."""
    kv_bytes_per_token: float
    kv_pool_gib: float
    kv_tokens: int
    """Of one attention data-parallel rank."""
    start_headroom_gib: float
    """Left when the server is ready; below zero it dies in start-up."""
    load_headroom_gib: float
    """Left with the largest prefill chunk in flight; below zero it may die under load."""
    uncertainty_gib: float
    verdict: Literal["fits", "tight", "does_not_fit"]
    why: str
    """The number that decides."""
    max_running: int
    calibrated: bool = False
    pool_is_left: bool = True
    """The KV pool takes what the rest leaves; False: its size was asked for, and a small one is no risk."""


class Estimate(Record):
    """A figure and the range that it is expected in."""

    value: float
    low: float
    high: float


class RungPrediction(Record):
    """One concurrency in steady state. running is the number of requests that decode at once."""

    concurrency: int
    running: int
    output_tok_s: Estimate
    ttft_ms: Estimate
    tpot_ms: Estimate
    limit: Limit
    why: str
    terms_ms: dict[str, float] = Field(default_factory=dict)
    """The decode step by purpose."""


class Prediction(Record):
    """What is expected of a configuration, and what could not be said."""

    memory: MemoryTable | None = None
    rungs: tuple[RungPrediction, ...] = ()
    prefill_tok_s: float | None = None
    """Input tokens per second of one prompt alone."""
    refusals: tuple[str, ...] = ()
    """Why it would surely die at start; empty when it may be launched."""
    problems: tuple[str, ...] = ()
    """The refusals, and what cannot be predicted."""
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Where the numbers come from."""

    def rung(self, concurrency: int) -> RungPrediction | None:
        """The prediction at this concurrency."""
        return next((r for r in self.rungs if r.concurrency == concurrency), None)
