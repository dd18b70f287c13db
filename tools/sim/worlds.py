"""Worlds as a benchmark: the protocol that any world meets, and the simulated ones.

A user's own world is any object with the members of `BenchWorld`, made by a factory `factory(seed: int)`. Its
`launch` may give any `VirtualOutcome`; `value` and `oracle` are for scoring only, and no policy may call
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from moeagent.memory.records import EngineFacts, Gpu, HostFacts, ModelFacts, ServerConfig, Workload
from moeagent.tools.sim.cards import DRIVER, Card
from moeagent.tools.sim.catalogue import CommandLineError, engine_facts
from moeagent.tools.sim.environment import model_config
from moeagent.tools.sim.machines import MODEL_ROOT, instance
from moeagent.tools.sim.nvidia_smi import topology
from moeagent.tools.sim.oracle import search
from moeagent.tools.sim.shapes import GIB
from moeagent.tools.sim.space import SpaceKnob, space_of
from moeagent.tools.sim.startup import never_starts
from moeagent.tools.sim.virtual import VirtualMachine, VirtualOutcome
from moeagent.tools.sim.world import World

SAFE_LIMIT = 1.1
"""The oracle keeps this far away from the batch at which memory runs out."""
PAIRED = (
    "--tp-size", "--pp-size", "--dp-size", "--ep-size", "--enable-dp-attention", "--moe-a2a-backend",
    "--moe-runner-backend",
    "--mem-fraction-static", "--max-running-requests", "--speculative-algorithm", "--kv-cache-dtype",
)  # fmt: skip


@dataclass(frozen=True)
class WorldFacts:
    """What a survey of the world's box finds."""

    host: HostFacts
    engine: EngineFacts
    model: ModelFacts


class BenchWorld(Protocol):
    """What a world must offer to be run by a policy."""

    @property
    def name(self) -> str:
        """Identity of the world in a report."""

    @property
    def baseline(self) -> ServerConfig:
        """The configuration that every policy starts from; it works."""

    @property
    def workload(self) -> Workload:
        """The load and its ladder."""

    def facts(self) -> WorldFacts:
        """The machine, the engine and the model by their own word."""

    def space(self) -> tuple[SpaceKnob, ...]:
        """The knobs and values that a search may try."""

    def launch(self, config: ServerConfig, workload: Workload, nonce: int) -> VirtualOutcome:
        """One noisy launch; equal arguments give equal outcomes, another nonce other noise."""

    def value(self, config: ServerConfig) -> float | None:
        """Noise-free output tokens/s at the best rung; None when it crashes or is wrong."""

    def oracle(self) -> tuple[ServerConfig, float]:
        """The best configuration of the space, and its noise-free value."""


@dataclass(frozen=True)
class SimWorld:
    """A world on the simulated machine."""

    world: World
    family: str
    start: ServerConfig
    load: Workload
    together: tuple[Mapping[str, bool | int | float | str], ...] = ()
    """Settings that belong together; only the oracle's search knows them."""

    @property
    def name(self) -> str:
        """Family and seed."""
        return f"{self.family}-{self.world.seed}"

    @property
    def baseline(self) -> ServerConfig:
        """The configuration that every policy starts from."""
        return self.start

    @property
    def workload(self) -> Workload:
        """The load and its ladder."""
        return self.load

    @cached_property
    def _machine(self) -> VirtualMachine:
        return VirtualMachine(self.world, self.start)

    @cached_property
    def _values(self) -> dict[str, float | None]:
        return {}

    @cached_property
    def _best(self) -> tuple[ServerConfig, float]:
        if self.world.hidden.flat:
            value = self.value(self.start)
            assert value is not None
            return self.start, value
        seeds = tuple(dict(settings) for settings in self.together)
        return search(self.value, self.space(), self.start, seeds, PAIRED)

    def facts(self) -> WorldFacts:
        """The machine, the engine and the model as a survey finds them."""
        machine, model = self.world.machine, self.world.model
        gpus = tuple(
            Gpu(index=index, name=machine.gpu, memory_mib=machine.memory_mib, memory_used_mib=4,
                compute_capability=machine.capability, power_limit_w=float(machine.power_w))
            for index in range(machine.count)
        )  # fmt: skip
        host = HostFacts(
            name="sim", machine_id=f"sim-{self.world.machine_name}-{self.world.seed}", gpus=gpus,
            driver=DRIVER,
            cuda="13.0", cpu_cores=machine.cpu_cores, ram_gib=machine.ram_gib, simulated=True,
            topology=topology([Card(gpu.index, machine, gpu.memory_used_mib) for gpu in gpus]),
        )  # fmt: skip
        facts = ModelFacts(
            path=f"{MODEL_ROOT}/{model.folder}", architecture=model.architecture,
            config=model_config(self.world.model_name),
            size_gib=round(model.checkpoint_bytes / GIB, 1),
        )  # fmt: skip
        return WorldFacts(host, engine_facts(), facts)

    def space(self) -> tuple[SpaceKnob, ...]:
        """The knobs and values that a search may try."""
        return space_of(self.world)

    def launch(self, config: ServerConfig, workload: Workload, nonce: int) -> VirtualOutcome:
        """One noisy launch."""
        return self._machine.launch(config, workload, nonce)

    def value(self, config: ServerConfig) -> float | None:
        """Noise-free output tokens/s at the best rung; None when it crashes or answers wrongly."""
        if config.id not in self._values:
            self._values[config.id] = self._value(config)
        return self._values[config.id]

    def _value(self, config: ServerConfig) -> float | None:
        try:
            made = instance(self.world, config)
        except CommandLineError:
            return None
        if made.settings.has_any(self.world.hidden.garbage):
            return None
        if never_starts(self.world, made.settings, made.plan):
            return None
        limit, best = made.plan.breaks_at(), 0.0
        for concurrency in self.load.ladder:
            behaviour = self._machine.behaviour(made, concurrency, self.load)
            if limit is not None and behaviour.running / made.settings.groups * SAFE_LIMIT >= limit:
                return None
            best = max(best, behaviour.output_tok_s)
        return best

    def oracle(self) -> tuple[ServerConfig, float]:
        """The best configuration that the search finds, and its noise-free value."""
        return self._best
