"""Preflight against the simulated machine: what it turned down, held against what would have happened.

Configurations are the baseline of a world with one to three knobs set anew at random. A start-up death is a
launch that was refused, died or hung before it was ready; a configuration works when its whole ladder was
measured and its answers are the baseline's. Worlds whose own baseline dies are left out.

Why the score is not perfect, and should not be: the worlds hide kernels that die (`Hidden.crashes`), which
nobody can know before the launch; the simulated machine refuses some things that SGLang 0.5.9 runs by another
path (NVFP4 experts with the Triton runner), and starts EAGLE-3 without a draft model, which SGLang does not:
these are the false rejections. Rules are written from the engine's source, not from the simulator's data.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from moeagent.agent.worlds.preflight import Preflight
from moeagent.memory.records import LaunchOutcome, ServerConfig
from moeagent.tools.sim.space import with_choice
from moeagent.tools.sim.worlds import SimWorld

MOST_KNOBS = 3
STILLBORN = (LaunchOutcome.REFUSED, LaunchOutcome.DIED_STARTING, LaunchOutcome.HUNG_STARTING)


@dataclass
class Tally:
    """Counts over all worlds, with the reasons of the mistakes."""

    worlds: int = 0
    deaths: int = 0
    works: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    """Start-up deaths that were let through, by their last error line."""
    false: Counter[str] = field(default_factory=Counter)
    """Reasons against configurations that work."""

    @property
    def caught(self) -> float:
        """Share of the start-up deaths that were turned down."""
        return 1 - self.missed.total() / self.deaths

    @property
    def wronged(self) -> float:
        """Share of the working configurations that were turned down."""
        return self.false.total() / self.works

    def text(self) -> str:
        """The figures beside what is asked, and every mistake by its reason."""
        lines = [
            f"{self.worlds} worlds",
            f"start-up deaths turned down: asked >= 90 %, reached {self.caught:.1%} of {self.deaths}",
            f"working configurations turned down: asked <= 2 %, reached {self.wronged:.2%} of {self.works}",
        ]
        lines += [f"  let through {count} x {reason}" for reason, count in self.missed.most_common()]
        lines += [f"  turned down {count} x {reason}" for reason, count in self.false.most_common()]
        return "\n".join(lines)


def tally(worlds: Iterable[SimWorld], per_world: int) -> Tally:
    """Preflight and launch of `per_world` configurations in each world."""
    found = Tally()
    for world in worlds:
        if world.value(world.baseline) is None:
            continue
        found.worlds += 1
        preflight = Preflight(world)
        for config in candidates(world, per_world):
            judge(found, world, config, preflight.objection(config))
    return found


def candidates(world: SimWorld, count: int) -> Iterator[ServerConfig]:
    """The baseline with a few knobs set anew, by the world's own seed."""
    rng = random.Random(f"preflight-{world.name}")
    for _ in range(count):
        config = world.baseline
        for knob in rng.sample(world.space(), rng.randint(1, MOST_KNOBS)):
            config = with_choice(config, knob.name, rng.choice(knob.choices))
        if config != world.baseline:
            yield config


def judge(found: Tally, world: SimWorld, config: ServerConfig, objection: str | None) -> None:
    """Launch a configuration and count whether the objection was right."""
    outcome = world.launch(config, world.workload, nonce=0)
    if outcome.outcome in STILLBORN:
        found.deaths += 1
        if objection is None:
            errors = [line.text for line in outcome.lines if "rror" in line.text]
            found.missed[(errors[-1] if errors else "hangs")[:100]] += 1
    elif outcome.outcome is LaunchOutcome.COMPLETED and outcome.answers == "reference":
        found.works += 1
        if objection is not None:
            found.false[objection[:100]] += 1
