"""Rules between flags, environment variables and GPUs, as data with a source each (data/couplings.toml)."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from pydantic import field_validator

from moeagent.memory.records import EngineFacts, HostFacts, Record, ServerConfig
from moeagent.tools.engines.catalogue import EVERY, catalogue

Outcome = Literal["refused", "overwritten", "ignored", "slow"]
_OPERATORS = ("set", "unset", "=", "!=", "<=", ">=", "in", "notin", "multiple_of", "divides")
Condition = tuple[Any, ...]
"""(name, operator) or (name, operator, value)."""


def _checked(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    for condition in conditions:
        if condition[1] not in _OPERATORS or len(condition) != (2 if "set" in condition[1] else 3):
            raise ValueError(f"not a condition: {condition}")
    return conditions


class Coupling(Record):
    """One rule: when all of `when` hold, all of `need` have to."""

    engine: str
    versions: tuple[str, ...] = (EVERY,)
    when: tuple[Condition, ...]
    need: tuple[Condition, ...]
    outcome: Outcome
    message: str
    source: str

    @field_validator("when", "need")
    @classmethod
    def _known_operators(cls, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return _checked(conditions)

    def subjects(self) -> tuple[str, ...]:
        """The flags and variables that the rule speaks about, in its order."""
        return tuple(dict.fromkeys(condition[0] for condition in (*self.when, *self.need)))


class DefaultInForce(Record):
    """What the engine puts in the place of a flag that is not given, beside its parser's default."""

    engine: str
    versions: tuple[str, ...] = (EVERY,)
    flag: str
    value: bool | int | float | str
    when: tuple[Condition, ...] = ()
    source: str

    @field_validator("when")
    @classmethod
    def _known_operators(cls, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return _checked(conditions)


class Couplings(Record):
    """All rules."""

    default: tuple[DefaultInForce, ...]
    """Of several for one flag the first whose conditions hold."""
    rule: tuple[Coupling, ...]


class Situation:
    """What a rule is held against: the configuration, the defaults behind it, the machine, the model."""

    def __init__(
        self,
        config: ServerConfig,
        facts: EngineFacts,
        host: HostFacts | None = None,
        model: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        known = catalogue(config.engine)
        self.engine = config.engine
        self.version = known.nearest_version(facts.version)
        self.given: dict[str, Any] = dict(config.env)
        for flag, value in config.flags.items():
            entry = known.entry(flag)
            self.given[flag] = value
            if entry is not None:
                self.given[entry.name] = value
        self._defaults = {knob.name: knob.default for knob in facts.knobs}
        self._around: dict[str, Any] = dict(model)
        if host is not None and host.gpus:
            self._around |= {"gpu.count": len(host.gpus), "gpu.cc": host.gpus[0].compute_capability}

    def value(self, name: str) -> Any:
        """What is in force as far as it is known; None where it is not.

        Given, a fact of machine or model, what the engine chooses, or the default of its parser.
        """
        for known in (self.given, self._around):
            if name in known:
                return known[name]
        chosen = (entry for entry in _rules().default if entry.flag == name and self.meets(entry))
        first = next((e.value for e in chosen if all(_holds(c, self) is True for c in e.when)), None)
        return self._defaults.get(name) if first is None else first

    def meets(self, entry: Coupling | DefaultInForce) -> bool:
        """Whether a rule is about this engine in this version."""
        return entry.engine == self.engine and (EVERY in entry.versions or self.version in entry.versions)


def couplings() -> tuple[Coupling, ...]:
    """The rules as data."""
    return _rules().rule


@cache
def _rules() -> Couplings:
    path = files("moeagent.tools.engines") / "data" / "couplings.toml"
    return Couplings.model_validate(tomllib.loads(path.read_text()))


def broken_rules(situation: Situation) -> tuple[Coupling, ...]:
    """The rules that a configuration breaks."""
    return tuple(
        rule
        for rule in couplings()
        if situation.meets(rule)
        and all(_holds(condition, situation) is True for condition in rule.when)
        and any(_holds(condition, situation) is False for condition in rule.need)
    )


def _holds(condition: Condition, situation: Situation) -> bool | None:
    """True, False, or None when a value is not known."""
    name, operator = condition[0], condition[1]
    if operator in ("set", "unset"):
        return (name in situation.given) is (operator == "set")
    left, right = situation.value(name), _operand(condition[2], situation)
    if left is None or right is None:
        return None
    if operator in ("in", "notin"):
        return (str(left) in [str(item) for item in right]) is (operator == "in")
    if operator in ("=", "!="):
        return (_number(left) == _number(right)) is (operator == "=")
    return _compare(operator, _number(left), _number(right))


def _compare(operator: str, left: Any, right: Any) -> bool | None:
    if not isinstance(left, float) or not isinstance(right, float):
        return None
    if operator == "<=":
        return left <= right
    if operator == ">=":
        return left >= right
    multiple, part = (left, right) if operator == "multiple_of" else (right, left)
    return part > 0 and multiple % part == 0


def _operand(value: Any, situation: Situation) -> Any:
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    name, plus, amount = value[1:].partition("+")
    found = situation.value(name)
    return _number(found) + float(amount) if plus and isinstance(_number(found), float) else found


def _number(value: Any) -> Any:
    """A float where the value is a number, else the value as text."""
    if isinstance(value, bool) or value is None:
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def explain(rule: Coupling, given: Mapping[str, Any]) -> str:
    """The rule as one sentence about what was given."""
    parts = [
        f"{name}={given[name]}" if given[name] is not True else name
        for name in rule.subjects()
        if name in given
    ]
    return f"{' with '.join(parts) or rule.subjects()[0]}: {rule.message}"
