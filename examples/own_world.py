"""A world of one's own for `moeagent worlds --world examples/own_world.py:toy`.

One GPU whose throughput grows with the running batch until memory ends, and a switch that pays 10 %.
"""

import random
from dataclasses import dataclass

from moeagent.memory.records import (
    ClientHealth,
    EngineFacts,
    Gpu,
    HostFacts,
    Knob,
    LaunchOutcome,
    ModelFacts,
    Rung,
    ServerConfig,
    Workload,
)
from moeagent.tools.sim.logs import LogLine
from moeagent.tools.sim.space import SpaceKnob
from moeagent.tools.sim.virtual import VirtualOutcome
from moeagent.tools.sim.worlds import WorldFacts

BATCH = "--max-running-requests"
SWITCH = "--enable-mixed-chunk"
FITS = 200
"""Requests that the memory holds."""


@dataclass(frozen=True)
class Toy:
    """The members that every world has."""

    seed: int
    baseline = ServerConfig(engine="sglang", flags={BATCH: 32})
    workload = Workload(input_len=128, output_len=128, ladder=(1, 128))

    @property
    def name(self) -> str:
        """Identity in the report."""
        return f"toy-{self.seed}"

    def facts(self) -> WorldFacts:
        """What a survey would find."""
        gpu = Gpu(index=0, name="Toy GPU", memory_mib=24576, compute_capability="8.9")
        host = HostFacts(name="toy", machine_id="toy", gpus=(gpu,), cpu_cores=8, simulated=True)
        knobs = (Knob(name=BATCH, kind="int"), Knob(name=SWITCH, kind="bool", default=False))
        return WorldFacts(
            host,
            EngineFacts(engine="sglang", version="0.5.9", knobs=knobs, source="parser"),
            ModelFacts(path="/models/toy"),
        )

    def space(self) -> tuple[SpaceKnob, ...]:
        """What a search may try."""
        return (SpaceKnob(name=BATCH, values=(16, 32, 64, 128, 256)), SpaceKnob(name=SWITCH, values=(True,)))

    def launch(self, config: ServerConfig, workload: Workload, nonce: int) -> VirtualOutcome:
        """One launch with 1 % noise."""
        rng = random.Random(f"{self.seed}-{config.id}-{nonce}")
        value = self.value(config)
        if value is None:
            log = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
            return outcome(LaunchOutcome.DIED_STARTING, (), log)
        top = max(workload.ladder)
        rungs = tuple(
            rung(concurrency, value * min(concurrency / top * 2, 1.0) * rng.gauss(1.0, 0.01))
            for concurrency in workload.ladder
        )
        return outcome(LaunchOutcome.COMPLETED, rungs, "The server is fired up and ready to roll!\n")

    def value(self, config: ServerConfig) -> float | None:
        """Noise-free output tokens/s at the best rung; None when it does not fit."""
        batch = int(config.flags.get(BATCH, 128))
        if batch > FITS:
            return None
        return 20.0 * min(batch, 128) * (1.1 if config.flags.get(SWITCH) else 1.0)

    def oracle(self) -> tuple[ServerConfig, float]:
        """The best configuration and its value."""
        best = ServerConfig(engine="sglang", flags={BATCH: 128, SWITCH: True})
        return best, self.value(best) or 0.0


def rung(concurrency: int, tok_s: float) -> Rung:
    """One measurement."""
    return Rung(
        concurrency=concurrency, completed=concurrency, failed=0, duration_s=concurrency * 128 / tok_s,
        output_tok_s=tok_s, total_tok_s=2 * tok_s,
        client=ClientHealth(cpu_s=0.0, loop_lag_ms=0.0, valid=True),
    )  # fmt: skip


def outcome(kind: LaunchOutcome, rungs: tuple[Rung, ...], log: str) -> VirtualOutcome:
    """One launch of three minutes."""
    completed = kind is LaunchOutcome.COMPLETED
    return VirtualOutcome(
        outcome=kind, rungs=rungs, died_at=None, ready_after_s=60.0 if completed else None, cost_s=180.0,
        exit_code=None if completed else 1, effective={}, memory={}, answers="reference",
        lines=tuple(LogLine(0.0, line) for line in log.splitlines()),
    )  # fmt: skip


def toy(seed: int) -> Toy:
    """The factory."""
    return Toy(seed)
