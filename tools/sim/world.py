"""What a simulated world hides: its efficiencies, its noise, and what the textbook does not know.

No predictor may read these numbers. They are drawn from a seed around figures that were measured on machines
of
this kind (data/machines.toml), so that two seeds are two boxes of the same type.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from moeagent.tools.sim.shapes import MachineShape, ModelShape, load_machines, load_models


@dataclass(frozen=True)
class Hidden:
    """Hidden properties of one world; factors multiply a time unless the name says otherwise."""

    bandwidth: float = 1.0
    compute: float = 1.0
    kv_read: float = 0.75
    """Share of the memory bandwidth that the attention kernel reaches."""
    misc_us: float = 30.0
    """Unfused small kernels of one layer."""
    link: float = 1.0
    expert_skew: float = 1.2
    """Load of the busiest expert-parallel rank beyond what uniform routing gives."""
    a2a_us: float = 8.0
    """Fixed cost of dispatch and of combine, each, in one layer."""
    dp_attention: float = 1.25
    """Waiting of data-parallel attention ranks for the slowest of them."""
    narrow_cache: float = 1.25
    """Cost of reading an FP8 cache that the model was not made for, against half the bytes."""
    pipeline_bubble: float = 1.2
    """Time lost between pipeline stages."""
    eager_layer_us: float = 450.0
    """Launch overhead of one layer outside a CUDA graph."""
    host_step_us: float = 700.0
    host_request_us: float = 9.0
    detokenise_us: float = 7.0
    throttle: float = 0.02
    """Clock lost at full batch to the power limit."""
    interference: float = 0.02
    """Slow-down of decoding while prefills are interleaved."""
    mixed_chunk: float = 0.0
    """Relative gain of --enable-mixed-chunk under load."""
    mscclpp: float = 0.01
    """Relative gain of --enable-mscclpp while messages are small."""
    retract_knee: float = 0.11
    """Share of the remaining output below which reserving leads to retractions."""
    retract_cost: float = 0.25
    tuned_channels: int = 8
    """NCCL channels from which the ring is at its best; 0 where more channels bring nothing."""
    fragment_gib: float = 1.9
    """Allocator growth under load."""
    a2a_mib_per_request: float = 16.0
    """All-to-all receive buffers that grow with the running batch: in no start-up figure."""
    verify_extra_us: float = 0.0
    """Speculative verify passes that fall off the CUDA graph."""
    accept: float = 1.0
    attention: Mapping[str, float] = field(default_factory=dict)
    """Time factor of each attention back end that works, beside the model's own (1.0)."""
    runner: Mapping[str, float] = field(default_factory=dict)
    gemm: Mapping[str, float] = field(default_factory=dict)
    speed_of: Mapping[str, float] = field(default_factory=dict)
    """Time factor of any flag (by destination name) or environment variable, when it is switched on."""
    couples: tuple[tuple[str, str, float], ...] = ()
    """Pairs of switches with a time factor that holds only while both are on."""
    garbage: tuple[str, ...] = ()
    """Settings as dest=value under which answers are wrong."""
    crashes: tuple[str, ...] = ()
    """Settings as dest=value that die in the first forward pass."""
    chunk_slope: float = 0.0
    """Relative prefill time gained or lost with each doubling of the chunk beyond 8,192."""
    flat: bool = False
    """Placebo: no setting changes the speed."""
    noise_within: float = 0.012
    noise_between: float = 0.015
    drift: float = 0.0
    """Slow-down over a hundred launches."""
    neighbour: float = 0.0
    """Chance that another tenant slows a launch down."""


@dataclass(frozen=True)
class World:
    """One simulated box with one model on it."""

    name: str
    seed: int
    model_name: str
    machine_name: str
    hidden: Hidden
    pace: float = 1.0
    """Factor on every step time: it brings the reference configuration to its published figure."""

    @property
    def model(self) -> ModelShape:
        """The model that is served."""
        return load_models()[self.model_name]

    @property
    def machine(self) -> MachineShape:
        """The machine it is served on."""
        return load_machines()[self.machine_name]


def around(rng: random.Random, value: float, spread: float) -> float:
    """A draw within a relative spread of the value."""
    return value * (1.0 + rng.uniform(-spread, spread))


def draw_hidden(rng: random.Random) -> Hidden:
    """Hidden numbers of an ordinary box."""
    return Hidden(
        bandwidth=around(rng, 1.0, 0.03), compute=around(rng, 1.0, 0.04), kv_read=around(rng, 0.75, 0.05),
        misc_us=around(rng, 30.0, 0.12), link=around(rng, 1.0, 0.05), expert_skew=around(rng, 1.2, 0.02),
        a2a_us=around(rng, 8.0, 0.1), host_step_us=around(rng, 700.0, 0.2),
        host_request_us=around(rng, 9.0, 0.2), detokenise_us=around(rng, 7.0, 0.2),
        throttle=rng.uniform(0.0, 0.03), interference=rng.uniform(0.01, 0.03),
        mixed_chunk=rng.uniform(-0.02, 0.03), mscclpp=rng.uniform(0.0, 0.02),
        retract_knee=around(rng, 0.11, 0.2), fragment_gib=around(rng, 1.9, 0.06),
        a2a_mib_per_request=around(rng, 16.0, 0.25), accept=around(rng, 1.0, 0.04),
        noise_within=rng.uniform(0.008, 0.02), noise_between=rng.uniform(0.01, 0.02),
    )  # fmt: skip
