"""Families of worlds, drawn from a seed: boxes, mechanisms that no textbook tells, and honest placebos."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from moeagent.memory.records import FlagValue, ServerConfig, Workload
from moeagent.tools.sim.machines import EP8_FLAGS, anchored
from moeagent.tools.sim.world import Hidden, World, around, draw_hidden
from moeagent.tools.sim.worlds import SimWorld

Handicap = tuple[dict[str, FlagValue], dict[str, str]]
HARMLESS = ("enable_mixed_chunk", "disable_radix_cache", "OMP_NUM_THREADS", "CUDA_DEVICE_MAX_CONNECTIONS")
DP_EP: Mapping[str, FlagValue] = {"--enable-dp-attention": True, "--dp-size": 8, **EP8_FLAGS}
TP1_DP2: Mapping[str, FlagValue] = {"--tp-size": 1, "--dp-size": 2}
EP8: Mapping[str, FlagValue] = {"--ep-size": 8}
TP4_PP2: Mapping[str, FlagValue] = {"--tp-size": 4, "--pp-size": 2}


@dataclass(frozen=True)
class BoxKind:
    """A box with a model: baseline, load, and in which ways a user may have it set up badly."""

    model: str
    machine: str
    flags: Mapping[str, FlagValue]
    workload: Workload
    handicaps: tuple[Handicap, ...]
    attention: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    runner: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    gemm: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    anchor: tuple[int, float] | None = None
    accept: tuple[float, float] = (0.7, 1.05)


SM120_MOE = BoxKind(
    model="glm-5-nvfp4", machine="rtx-pro-6000-x8",
    flags={"--tp-size": 8, "--mem-fraction-static": 0.90, "--max-running-requests": 1024,
           "--quantization": "modelopt_fp4"},
    workload=Workload(ladder=(1, 16, 64, 256)), anchor=(256, 1570.0),
    handicaps=(
        ({"--max-running-requests": 128}, {}),
        ({"--cuda-graph-max-bs": 8, "--disable-overlap-schedule": True}, {}),
        ({"--mem-fraction-static": 0.82}, {}), ({"--kv-cache-dtype": "bf16"}, {}),
        ({"--attention-backend": "triton"}, {}), ({"--chunked-prefill-size": 1024}, {}),
        ({}, {"NCCL_P2P_DISABLE": "1"}), ({}, {"NCCL_PROTO": "LL"}),
    ),
    attention={"triton": (1.06, 1.25), "torch_native": (2.5, 3.5), "flex_attention": (1.8, 2.4)},
    runner={"flashinfer_cutlass": (0.97, 1.03)}, gemm={"flashinfer_cudnn": (0.96, 1.04)},
)  # fmt: skip
H200_MOE = BoxKind(
    model="qwen3-30b-a3b", machine="h200-x1", flags={"--tp-size": 1, "--max-running-requests": 256},
    workload=Workload(input_len=512, output_len=512, ladder=(1, 32, 128, 512)),
    handicaps=(
        ({"--max-running-requests": 128}, {}),
        ({"--mem-fraction-static": 0.78}, {}), ({"--disable-cuda-graph": True}, {}),
        ({"--cuda-graph-max-bs": 8}, {}), ({"--disable-overlap-schedule": True}, {}),
        ({"--chunked-prefill-size": 1024}, {}), ({"--attention-backend": "triton"}, {}),
    ),
    attention={"flashinfer": (0.96, 1.1), "triton": (1.1, 1.3), "torch_native": (2.5, 4.0),
    "flex_attention": (1.5, 2.2)},
    runner={"flashinfer_cutlass": (0.9, 1.08), "cutlass": (0.99, 1.01), "deep_gemm": (1.0, 1.05)},
)  # fmt: skip
CONSUMER_MOE = BoxKind(
    model="gpt-oss-20b", machine="rtx-5090-x1", flags={"--tp-size": 1},
    workload=Workload(input_len=512, output_len=256, ladder=(1, 8, 32, 128)),
    handicaps=(
        ({"--max-running-requests": 48}, {}),
        ({"--mem-fraction-static": 0.78}, {}), ({"--cuda-graph-max-bs": 8}, {}),
        ({"--disable-cuda-graph": True}, {}), ({"--disable-overlap-schedule": True}, {}),
        ({"--chunked-prefill-size": 1024}, {}),
    ),
    attention={"flashinfer": (0.94, 1.12), "torch_native": (2.5, 4.0), "flex_attention": (1.4, 2.0)},
    runner={"triton": (1.0, 1.15), "cutlass": (1.0, 1.02)},
)  # fmt: skip
DENSE_PAIR = BoxKind(
    model="llama-3.3-70b-fp8", machine="rtx-pro-6000-x2", flags={"--tp-size": 2,
    "--max-running-requests": 256},
    workload=Workload(input_len=1024, output_len=512, ladder=(1, 16, 64, 256)),
    handicaps=(
        ({"--max-running-requests": 96}, {}),
        ({"--mem-fraction-static": 0.78}, {}), ({"--cuda-graph-max-bs": 8}, {}),
        ({"--chunked-prefill-size": 1024}, {}), ({}, {"NCCL_P2P_DISABLE": "1"}),
        ({"--attention-backend": "triton"}, {}),
    ),
    attention={"triton": (1.03, 1.2), "torch_native": (2.5, 4.0), "flex_attention": (1.5, 2.0)},
)  # fmt: skip
KINDS = (SM120_MOE, H200_MOE, CONSUMER_MOE, DENSE_PAIR)


def _factors(rng: random.Random, ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    return {name: rng.uniform(*span) for name, span in ranges.items()}


def _hidden(rng: random.Random, kind: BoxKind) -> Hidden:
    return replace(
        draw_hidden(rng),
        attention=_factors(rng, kind.attention), runner=_factors(rng, kind.runner),
        gemm=_factors(rng, kind.gemm),
        accept=rng.uniform(*kind.accept), host_request_us=around(rng, 9.0, 0.5),
        detokenise_us=around(rng, 8.0, 0.5),
        mixed_chunk=rng.uniform(-0.04, 0.02), chunk_slope=rng.uniform(-0.02, 0.02),
        speed_of={"enable_torch_compile": rng.uniform(0.985, 1.03),
                  "disable_radix_cache": rng.uniform(0.996, 1.003)},
        dp_attention=rng.uniform(1.1, 1.5), pipeline_bubble=rng.uniform(1.15, 1.45),
        narrow_cache=rng.uniform(1.2, 2.4),
        garbage=("kv_cache_dtype=fp4_e2m1",),
        noise_within=rng.uniform(0.006, 0.012), noise_between=rng.uniform(0.006, 0.015),
    )  # fmt: skip


def _world(
    family: str, seed: int, kind: BoxKind, hidden: Hidden, rng: random.Random, handicaps: int
) -> SimWorld:
    flags = dict(kind.flags)
    env: dict[str, str] = {}
    world = World(family, seed, kind.model, kind.machine, hidden)
    if kind.anchor is not None:
        world = anchored(world, ServerConfig(engine="sglang", flags=flags), kind.workload, kind.anchor)
    for more_flags, more_env in rng.sample(kind.handicaps, handicaps):
        flags |= more_flags
        env |= more_env
    start = ServerConfig(engine="sglang", flags=flags, env=env)
    together: tuple[Mapping[str, FlagValue], ...] = (
        (DP_EP, TP4_PP2, EP8) if kind is SM120_MOE else ((TP1_DP2,) if kind is DENSE_PAIR else ())
    )
    return SimWorld(world, family, start, kind.workload, together)


def plain(seed: int) -> SimWorld:
    """An ordinary box that is set up badly in one to three ways."""
    rng = random.Random(f"plain-{seed}")
    kind = KINDS[seed % len(KINDS)]
    return _world(f"plain-{kind.machine}", seed, kind, _hidden(rng, kind), rng, rng.randint(1, 3))


def interaction(seed: int) -> SimWorld:
    """Two changes that pay only together, and a winner that hurts once another is on."""
    rng = random.Random(f"interaction-{seed}")
    kind = rng.choice(KINDS)
    one, other, third, fourth = rng.sample(HARMLESS, 4)
    hidden = replace(
        _hidden(rng, kind),
        speed_of={one: 1.012, other: 1.015, third: 0.965, fourth: 0.96},
        couples=((one, other, rng.uniform(0.86, 0.92)), (third, fourth, 1.10)), mixed_chunk=0.0,
    )  # fmt: skip
    return _world("interaction", seed, kind, hidden, rng, 1)


def textbook_wrong(seed: int) -> SimWorld:
    """More NCCL channels, larger chunks, overlap scheduling and speculation all hurt here."""
    rng = random.Random(f"textbook-{seed}")
    kind = rng.choice(KINDS)
    hidden = replace(
        _hidden(rng, kind),
        tuned_channels=0, verify_extra_us=9000.0, chunk_slope=rng.uniform(0.08, 0.15), mixed_chunk=-0.05,
        host_step_us=120.0, host_request_us=2.0, detokenise_us=1.0,
        speed_of={"NCCL_MIN_NCHANNELS": 1.05, "disable_overlap_schedule": rng.uniform(0.91, 0.95),
                  "enable_torch_compile": 1.06, "disable_radix_cache": 1.02},
    )  # fmt: skip
    return _world("textbook-wrong", seed, kind, hidden, rng, 1)


def crashing(seed: int) -> SimWorld:
    """Kernels that die on this stack stand beside the gains."""
    rng = random.Random(f"crashing-{seed}")
    kind = rng.choice(KINDS)
    lures = [f"attention_backend={name}" for name in kind.attention]
    lures += [
        "enable_torch_compile=True",
        "enable_mixed_chunk=True",
        "chunked_prefill_size=16384",
        "page_size=16",
    ]
    hidden = _hidden(rng, kind)
    while True:
        fatal = replace(hidden, crashes=tuple(rng.sample(lures, min(4, len(lures)))))
        world = _world("crashing", seed, kind, fatal, rng, rng.randint(1, 2))
        if world.value(world.start) is not None:  # a lure may be what the machine's defaults are
            return world


def cliff(seed: int) -> SimWorld:
    """Memory is tight: the settings that pay lie next to those that die under load."""
    rng = random.Random(f"cliff-{seed}")
    kind = rng.choice((SM120_MOE, DENSE_PAIR, CONSUMER_MOE))
    hidden = replace(_hidden(rng, kind), fragment_gib=rng.uniform(2.2, 2.6))
    return _world("cliff", seed, kind, hidden, rng, rng.randint(1, 2))


def noisy(seed: int) -> SimWorld:
    """A shared host: 3 % within and 4 % between launches, a neighbour, and drift."""
    rng = random.Random(f"noisy-{seed}")
    kind = rng.choice(KINDS)
    hidden = replace(_hidden(rng, kind), noise_within=0.03, noise_between=0.04, neighbour=0.08, drift=0.02)
    return _world("noisy", seed, kind, hidden, rng, rng.randint(1, 3))


def placebo(seed: int) -> SimWorld:
    """No setting changes the speed; the noise is that of a shared host."""
    rng = random.Random(f"placebo-{seed}")
    kind = rng.choice(KINDS)
    hidden = replace(
        _hidden(rng, kind), flat=True, noise_within=0.03, noise_between=0.04, neighbour=0.03, drift=0.01
    )
    return _world("placebo", seed, kind, hidden, rng, 0)


FAMILIES: Mapping[str, Callable[[int], SimWorld]] = {
    "plain": plain, "interaction": interaction, "textbook-wrong": textbook_wrong, "crashing": crashing,
    "cliff": cliff, "noisy": noisy, "placebo": placebo,
}  # fmt: skip
ROTATION = (
    "plain",
    "plain",
    "plain",
    "plain",
    "interaction",
    "textbook-wrong",
    "crashing",
    "cliff",
    "plain",
    "noisy",
)


def draw_worlds(count: int, seed: int = 0) -> tuple[SimWorld, ...]:
    """`count` worlds in which something helps, all families in turn."""
    return tuple(FAMILIES[ROTATION[i % len(ROTATION)]](seed * 1000 + i) for i in range(count))


def placebo_worlds(count: int, seed: int = 0) -> tuple[SimWorld, ...]:
    """`count` worlds in which nothing helps."""
    return tuple(placebo(seed * 1000 + i) for i in range(count))
