"""The space of a simulated world: which values a search may try for which knob."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from moeagent.memory.records import ConfigChange, FlagValue, Record, ServerConfig
from moeagent.tools.sim.world import World


class SpaceKnob(Record):
    """One knob: a flag when its name begins with dashes, else an environment variable."""

    name: str
    values: tuple[FlagValue, ...]
    """What it may be set to; leaving it out is one more choice unless `keep`."""
    needs: Literal["", "moe", "multi", "moe-multi", "nvfp4"] = ""
    keep: bool = False

    @property
    def choices(self) -> tuple[FlagValue | None, ...]:
        """All choices; None leaves the knob out."""
        return self.values if self.keep else (None, *self.values)


@cache
def _all_knobs() -> tuple[SpaceKnob, ...]:
    text = (files("moeagent.tools.sim.data") / "space.toml").read_text()
    return tuple(SpaceKnob.model_validate(table) for table in tomllib.loads(text)["knob"])


def space_of(world: World) -> tuple[SpaceKnob, ...]:
    """The knobs that make sense on this box with this model."""
    machine, model = world.machine, world.model
    has = {
        "": True, "moe": model.experts > 0, "multi": machine.count > 1, "nvfp4": model.quant == "nvfp4",
        "moe-multi": model.experts > 0 and machine.count > 1,
    }  # fmt: skip
    return tuple(knob for knob in _all_knobs() if has[knob.needs])


def value_of(config: ServerConfig, name: str) -> FlagValue | None:
    """The present choice of a knob; None when it is left out."""
    return config.flags.get(name) if name.startswith("-") else config.env.get(name)


def with_choice(config: ServerConfig, name: str, value: FlagValue | None) -> ServerConfig:
    """The configuration with one knob set, or left out when the value is None."""
    flag = name.startswith("-")
    if value is None:
        return config.apply(ConfigChange(remove_flags=(name,)) if flag else ConfigChange(remove_env=(name,)))
    return config.apply(
        ConfigChange(set_flags={name: value}) if flag else ConfigChange(set_env={name: str(value)})
    )
