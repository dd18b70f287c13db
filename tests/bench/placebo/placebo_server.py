"""A server in virtual time whose speed does not depend on its flags, measured with realistic noise."""

import math
import random
from dataclasses import dataclass, field

from moeagent.memory.records import ClientHealth, Launch, LaunchOutcome, Rung, ServerConfig

BETWEEN_SD = 0.04
WITHIN_SD = 0.03
DRIFT = 0.03
"""Size of the slow drift over the campaign, and, a third of it, of the swing of heat on top."""
NEIGHBOUR_COST = 0.06
NEIGHBOUR_STAY = 12
"""Launches during which somebody else's job comes and goes; it slows half of the rungs measured meanwhile."""
LADDER = {1024: 1600.0}
"""Output tok/s by concurrency of the placebo."""


@dataclass
class PlaceboMachine:
    """Launches cost nothing but their number; `planted` maps a flag to its true log effect."""

    seed: int
    budget: int
    repeats: int
    planted: dict[str, float] = field(default_factory=dict)
    launched: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.slope = self.random.uniform(-DRIFT, DRIFT)
        self.phase = self.random.uniform(0, 2 * math.pi)
        self.neighbour_from = self.random.randrange(self.budget)

    def launch(self, config: ServerConfig, hypothesis: str | None) -> Launch:
        """One launch with every rung of the ladder measured `repeats` times."""
        self.launched += 1
        level = self.random.gauss(0, BETWEEN_SD) + self._drift()
        level += sum(self.planted.get(name, 0.0) for name in config.flags)
        rungs = [self._rung(c, level) for c in LADDER for _ in range(self.repeats)]
        return Launch(
            id=f"L{self.launched}",
            hypothesis=hypothesis,
            config=config,
            command="placebo",
            outcome=LaunchOutcome.COMPLETED,
            rungs=tuple(rungs),
            simulated=True,
        )

    def _drift(self) -> float:
        part = self.launched / self.budget
        return self.slope * part + DRIFT / 3 * math.sin(2 * math.pi * 2 * part + self.phase)

    def _rung(self, concurrency: int, level: float) -> Rung:
        log_speed = level + self.random.gauss(0, WITHIN_SD)
        visiting = 0 <= self.launched - self.neighbour_from < NEIGHBOUR_STAY
        if visiting and self.random.random() < 0.5:
            log_speed -= NEIGHBOUR_COST
        speed = LADDER[concurrency] * math.exp(log_speed)
        return Rung(
            concurrency=concurrency,
            completed=2 * concurrency,
            failed=0,
            duration_s=2 * concurrency * 1024 / speed,
            output_tok_s=speed,
            total_tok_s=2 * speed,
            client=ClientHealth(cpu_s=1.0, loop_lag_ms=0.1, valid=True),
        )
