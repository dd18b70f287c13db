"""The best configuration of a world, by search over noise-free values: what a policy is compared with."""

from collections.abc import Callable
from itertools import combinations

from moeagent.memory.records import FlagValue, ServerConfig
from moeagent.tools.sim.space import SpaceKnob, value_of, with_choice

Value = Callable[[ServerConfig], float | None]
ROUNDS = 6
MIN_GAIN = 1e-6


def _better(value: Value, config: ServerConfig, best: float) -> float | None:
    got = value(config)
    return got if got is not None and got > best * (1.0 + MIN_GAIN) else None


def _single_moves(
    value: Value, space: tuple[SpaceKnob, ...], config: ServerConfig, best: float
) -> tuple[ServerConfig, float]:
    for knob in space:
        for choice in knob.choices:
            if choice == value_of(config, knob.name):
                continue
            trial = with_choice(config, knob.name, choice)
            got = _better(value, trial, best)
            if got is not None:
                config, best = trial, got
    return config, best


def _pair_moves(
    value: Value, space: tuple[SpaceKnob, ...], config: ServerConfig, best: float
) -> tuple[ServerConfig, float]:
    for one, other in combinations(space, 2):
        for first in one.choices:
            if first == value_of(config, one.name):
                continue
            half = with_choice(config, one.name, first)
            for second in other.choices:
                if second == value_of(config, other.name):
                    continue
                trial = with_choice(half, other.name, second)
                got = _better(value, trial, best)
                if got is not None:
                    return trial, got
    return config, best


def search(
    value: Value,
    space: tuple[SpaceKnob, ...],
    start: ServerConfig,
    seeds: tuple[dict[str, FlagValue], ...] = (),
    paired: tuple[str, ...] = (),
) -> tuple[ServerConfig, float]:
    """The best configuration found and its value.

    Climbs by single knobs, then by pairs of the `paired` knobs, from the start and from each seed (settings
    that belong together and pay only as a whole). Raises ValueError when the start itself has no value.
    """
    first = value(start)
    if first is None:
        raise ValueError("the baseline of a world must work")
    champion, champion_value = start, first
    names = {knob.name for knob in space}
    for seed in ({}, *seeds):
        if not set(seed) <= names:
            continue
        config = start
        for name, choice in seed.items():
            config = with_choice(config, name, choice)
        config, best = _climb(value, space, config, value(config) or 0.0, paired)
        if best > champion_value:
            champion, champion_value = config, best
    return champion, champion_value


def _climb(
    value: Value, space: tuple[SpaceKnob, ...], config: ServerConfig, best: float, paired: tuple[str, ...]
) -> tuple[ServerConfig, float]:
    few = tuple(knob for knob in space if knob.name in paired)
    for _ in range(ROUNDS):
        before = best
        config, best = _single_moves(value, space, config, best)
        config, best = _pair_moves(value, few, config, best)
        if best <= before * (1.0 + MIN_GAIN):
            break
    return config, best
