"""Searches that need no library: the sweep over a grid, and one coordinate at a time."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from moeagent.agent.worlds.bench import Bench, BudgetSpentError, Choice, Claim, Trial
from moeagent.agent.worlds.preflight import Preflight
from moeagent.memory.records import FlagValue, ServerConfig
from moeagent.tools.sim.space import SpaceKnob, value_of, with_choice

GRID_KNOBS = 3
"""A sweep file lists a handful of parameters; the space names the ones that matter most first."""


@dataclass(frozen=True)
class Grid:
    """The full product of evenly spread values of the space's first knobs, in order, until the launches end.

    As `vllm bench sweep serve` does it: every combination of the listed parameters, nothing learnt between.
    """

    preflight: bool = False

    @property
    def name(self) -> str:
        """As the command line spells it."""
        return "grid" + "+preflight" * self.preflight

    def run(self, bench: Bench, seed: int) -> Choice:
        """The sweep; it draws no random numbers."""
        gate = Preflight(bench) if self.preflight else None
        bench.launch(bench.baseline)
        for config in grid(bench.baseline, bench.space(), bench.left):
            if bench.left > 0 and (gate is None or gate.objection(config) is None):
                bench.launch(config)
        return best_of(bench)


def grid(start: ServerConfig, space: tuple[SpaceKnob, ...], size: int) -> Iterator[ServerConfig]:
    """Combinations of evenly spread values, about `size` of them."""
    knobs = space[:GRID_KNOBS]
    levels = max(2, round(size ** (1 / max(len(knobs), 1))))
    for values in product(*(spread(knob.values, levels) for knob in knobs)):
        config = start
        for knob, value in zip(knobs, values, strict=True):
            config = with_choice(config, knob.name, value)
        if config != start:
            yield config


def spread(values: tuple[FlagValue, ...], count: int) -> tuple[FlagValue, ...]:
    """`count` of the values, evenly spread, ends included."""
    if len(values) <= count:
        return values
    return tuple(values[round(i * (len(values) - 1) / (count - 1))] for i in range(count))


@dataclass(frozen=True)
class Coordinate:
    """One knob at a time in random order: a value at random, and on in its direction while it pays."""

    preflight: bool = False

    @property
    def name(self) -> str:
        """As the command line spells it."""
        return "coordinate" + "+preflight" * self.preflight

    def run(self, bench: Bench, seed: int) -> Choice:
        """Climb until the launches end."""
        gate = Preflight(bench) if self.preflight else None
        rng = random.Random(f"coordinate-{seed}")
        climb = _Climb(bench, gate, bench.launch(bench.baseline))
        try:
            for knob in rng.sample(bench.space(), len(bench.space())):
                climb.along(knob, rng)
        except BudgetSpentError:
            pass
        return best_of(bench)


@dataclass
class _Climb:
    bench: Bench
    gate: Preflight | None
    best: Trial

    def along(self, knob: SpaceKnob, rng: random.Random) -> None:
        """Try the knob's values outwards from the present one, the better way on."""
        choices = list(knob.choices)
        now = value_of(self.best.config, knob.name)
        at = choices.index(now) if now in choices else rng.randrange(len(choices))
        for way in rng.sample((-1, 1), 2):
            place = at + way
            while 0 <= place < len(choices) and self._better(with_choice(
                self.best.config, knob.name, choices[place]
            )):  # fmt: skip
                place += way

    def _better(self, config: ServerConfig) -> bool:
        if config == self.best.config or (self.gate is not None and self.gate.objection(config)):
            return False
        trial = self.bench.launch(config)
        if trial.value is None or trial.value <= (self.best.value or 0.0):
            return False
        self.best = trial
        return True


def best_of(bench: Bench) -> Choice:
    """The configuration with the highest measurement; another one than the baseline is claimed as a gain."""
    measured = [trial for trial in bench.trials if trial.value is not None]
    best = max(measured, key=lambda trial: trial.value or 0.0, default=bench.trials[0]).config
    claims = () if best == bench.baseline else (Claim(best, bench.baseline),)
    return Choice(best, claims)
