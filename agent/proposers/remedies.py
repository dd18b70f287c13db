"""How remedies become values: step sizes, couplings and fallbacks, held as data in moves/pivots.toml."""

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from pydantic import Field, ValidationError

from moeagent.memory.errors import InputError
from moeagent.memory.records import FlagValue, Record

Way = Literal["raise", "lower"]


class Steps(Record):
    """What each attempt adds or multiplies, and the bound that is never passed."""

    plus: tuple[float, ...] = ()
    times: tuple[float, ...] = ()
    bound: float | str
    """A number, or an expression over the facts."""

    def apply(self, value: float, attempt: int, way: Way, bound: float) -> float:
        """The value after the attempt (0-based) in this direction; the value itself when at the bound."""
        if self.times:
            moved = value * self.times[min(attempt, len(self.times) - 1)]
        else:
            moved = value + self.plus[min(attempt, len(self.plus) - 1)]
        return max(moved, bound) if way == "lower" else min(moved, bound)


class KnobSteps(Record):
    """One knob's steps in both directions."""

    engine: str
    flag: str
    default: FlagValue | None = None
    """What is in force when neither the configuration nor the engine says it; after = an expression."""
    lower: Steps
    raise_: Steps = Field(alias="raise")
    source: str


class FlagStep(Record):
    """A flag and where it goes."""

    flag: str
    direction: Literal["raise", "lower", "remove", "add"]


class Together(Record):
    """A second knob that must follow the first."""

    engine: str
    classes: tuple[str, ...]
    flag: str
    direction: Way
    also: FlagStep
    source: str


class Fallback(Record):
    """What to change for a class of failure when the diagnosis names nothing that can be changed."""

    engine: str
    classes: tuple[str, ...]
    steps: tuple[FlagStep, ...]
    source: str


class Alternatives(Record):
    """Other values of a flag that takes a word, in the order in which to try them."""

    engine: str
    flag: str
    values: tuple[str, ...]
    source: str


class Variable(Record):
    """What an environment variable is set to when a remedy names it without a value."""

    name: str
    value: str
    source: str


class RemedyBook(Record):
    """Everything in the file."""

    max_attempts: int = Field(gt=0)
    knob: tuple[KnobSteps, ...]
    together: tuple[Together, ...] = ()
    fallback: tuple[Fallback, ...] = ()
    alternative: tuple[Alternatives, ...] = ()
    variable: tuple[Variable, ...] = ()

    def fallbacks(self, engine: str, failure_class: str) -> tuple[FlagStep, ...]:
        """The steps for this failure, in order."""
        return tuple(
            step
            for rule in self.fallback
            if rule.engine == engine and failure_class in rule.classes
            for step in rule.steps
        )

    def variable_value(self, name: str) -> str | None:
        """What to set the variable to, None when the book does not know it."""
        return next((v.value for v in self.variable if v.name == name), None)


def parse_remedies(text: str, name: str) -> RemedyBook:
    """The book in a TOML text; raises InputError that names the file and the fault."""
    try:
        return RemedyBook.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise InputError(f"remedy file {name} cannot be used: {error}") from error


@lru_cache(maxsize=1)
def remedy_book() -> RemedyBook:
    """The book that comes with the package."""
    source = files("moeagent.agent.proposers.moves") / "pivots.toml"
    return parse_remedies(source.read_text("utf-8"), source.name)
