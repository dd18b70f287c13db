"""Which settings the engine refuses, ignores or dies of: data, matched against the server arguments."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field, model_validator

from moeagent.memory.records import Record
from moeagent.tools.sim.world import World

StageName = Literal["args", "dist", "load", "pool", "autotune", "capture", "piecewise", "warmup"]


class Rule(Record):
    """One thing that happens at one stage of the start-up when its conditions hold."""

    id: str
    when: dict[str, tuple[bool | int | str, ...]] = Field(min_length=1)
    env: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    capability: tuple[str, ...] = ()
    quant: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    pcie: bool | None = None
    stage: StageName
    trace: str | None = None
    notice: str | None = None
    hang: bool = False
    ranks: Literal["all", "some", "one"] = "one"
    linger_s: float = 2.0
    """Seconds that the parent outlives its children."""
    source: str

    @model_validator(mode="after")
    def _one_consequence(self) -> "Rule":
        if sum((self.trace is not None, self.notice is not None, self.hang)) != 1:
            raise ValueError(f"rule {self.id}: give exactly one of trace, notice and hang")
        return self

    def holds(self, args: Mapping[str, Any], env: Mapping[str, str], world: World) -> bool:
        """True when the rule applies to these server arguments in this world."""
        return (
            all(args.get(name) in values for name, values in self.when.items())
            and all(env.get(name) in values for name, values in self.env.items())
            and (not self.capability or world.machine.capability in self.capability)
            and (not self.quant or world.model.quant in self.quant)
            and (not self.models or world.model_name in self.models)
            and (self.pcie is None or world.machine.pcie == self.pcie)
        )


class Trace(Record):
    """What a failing rank prints: stack frames and the error; braces are filled from the arguments."""

    frames: str
    error: str


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules, in file order."""
    text = (files("moeagent.tools.sim.data") / "rules.toml").read_text()
    return tuple(Rule.model_validate(table) for table in tomllib.loads(text)["rule"])


@cache
def load_traces() -> dict[str, Trace]:
    """All traces by name."""
    text = (files("moeagent.tools.sim.data") / "traces.toml").read_text()
    return {name: Trace.model_validate(table) for name, table in tomllib.loads(text).items()}


def matching(args: Mapping[str, Any], env: Mapping[str, str], world: World) -> tuple[Rule, ...]:
    """The rules that hold."""
    return tuple(rule for rule in load_rules() if rule.holds(args, env, world))
