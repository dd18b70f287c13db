"""The playbook's data: moves, knob steps, names and flags to avoid, one file per engine.

Every fact carries its source. Files are validated when they are read, down to the names in their expressions.
"""

import tomllib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from moeagent.agent.proposers.expression import ExpressionError, names
from moeagent.agent.proposers.facts import FACT_NAMES, FUNCTION_NAMES
from moeagent.memory.errors import InputError
from moeagent.memory.records import FlagValue, Record

LimitName = Literal[
    "batch-cap",
    "kv-capacity",
    "prefill",
    "communication",
    "memory-bandwidth",
    "compute",
    "host-cpu",
    "client",
]


class EffectPoint(Record):
    """Prior of the relative change of output tok/s at one concurrency, given that the move's limit binds."""

    at: int = Field(gt=0)
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"at {self.at}: low {self.low} is above high {self.high}")
        return self


class Move(Record):
    """One lever, or a combination that only makes sense together."""

    id: str = Field(pattern=r"^[a-z0-9.-]+$")
    statement: str
    why: str
    source: str
    category: str
    limits: tuple[LimitName, ...] = ()
    """Limits that it moves; none means that it may pay whatever binds."""
    when: str = "True"
    """Precondition over facts; a fact that is not known makes it doubtful, not impossible."""
    set_flags: dict[str, FlagValue] = Field(default_factory=dict, alias="set")
    """A string that starts with = is an expression."""
    set_env: dict[str, str] = Field(default_factory=dict, alias="env")
    remove: tuple[str, ...] = ()
    """Flags, and environment variables, which do not begin with a dash."""
    effect: tuple[EffectPoint, ...] = Field(min_length=1)
    cost: float = Field(default=1.0, gt=0)
    """Launch time against the baseline's launch."""
    risk: float = Field(default=0.02, ge=0, le=1)
    """Chance of a crash, before the predictor's word."""
    unsure: float = Field(default=0.0, ge=0)
    """Least standard deviation of the predictor's word on this move: for what it cannot know, such as how
    many drafted tokens are accepted."""
    contrary: bool = False
    """It goes against what is usual, and belongs to a check of what is only believed."""
    together: bool = False
    """Its parts pay only together: what they did apart says nothing about it."""
    on_success: tuple[str, ...] = ()
    """Moves that become more likely once this one paid."""
    on_failure: tuple[str, ...] = ()
    """Moves that become more likely once this one did not pay, or died."""

    @property
    def removed_flags(self) -> tuple[str, ...]:
        """The flags that it leaves out."""
        return tuple(name for name in self.remove if name.startswith("-"))

    @property
    def removed_env(self) -> tuple[str, ...]:
        """The variables that it leaves out."""
        return tuple(name for name in self.remove if not name.startswith("-"))

    @model_validator(mode="after")
    def _plainly_contrary(self) -> Self:
        if self.contrary and (self.remove or len(self.expressions()) > 1):
            raise ValueError(f"move {self.id} is contrary: it may set plain values only, and remove nothing")
        return self

    def expressions(self) -> tuple[str, ...]:
        """Every expression in the move."""
        values = (*self.set_flags.values(), *self.set_env.values())
        return (self.when, *(v[1:] for v in values if isinstance(v, str) and v.startswith("=")))


class Step(Record):
    """A numeric knob that can be walked up and down from where it stands."""

    flag: str
    source: str
    category: str
    scale: Literal["times", "plus"]
    by: float = Field(gt=0)
    low: str = "1"
    """Expression."""
    high: str
    """Expression."""
    up: tuple[LimitName, ...] = ()
    """Limits that raising it moves."""
    down: tuple[LimitName, ...] = ()
    gain: float = Field(default=0.03, gt=0)
    """Half-width of the prior of the effect of one step."""
    risk_up: float = Field(default=0.05, ge=0, le=1)
    risk_down: float = Field(default=0.02, ge=0, le=1)
    also: dict[str, FlagValue] = Field(default_factory=dict)
    """Flags that must follow; `value` in their expressions is the knob's new value."""

    def expressions(self) -> tuple[str, ...]:
        """Every expression in the step."""
        return (
            self.low,
            self.high,
            *(v[1:] for v in self.also.values() if isinstance(v, str) and v.startswith("=")),
        )


class Avoid(Record):
    """A flag that no proposer may set, with the reason that the user reads."""

    flag: str
    reason: str
    source: str
    values: tuple[FlagValue, ...] | None = None
    """Only these values; None means any."""
    when: str = "True"


class Book(Record):
    """What the playbook knows about one engine."""

    engine: str
    caps: tuple[str, ...] = ()
    """Flags that bound the number of running sequences."""
    eager: tuple[str, ...] = ()
    """Flags that switch CUDA graphs off."""
    env: tuple[str, ...] = ()
    """Environment variables that a proposer may set beside those of the moves."""
    aliases: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Other spellings of a flag."""
    renamed: dict[str, str] = Field(default_factory=dict)
    """Spelling of newer versions, used when the engine does not declare the old one."""
    move: tuple[Move, ...] = ()
    step: tuple[Step, ...] = ()
    avoid: tuple[Avoid, ...] = ()

    def flags(self) -> frozenset[str]:
        """Every flag that a move or a step sets or removes."""
        moves = (flag for move in self.move for flag in (*move.set_flags, *move.removed_flags))
        return frozenset(moves) | {flag for step in self.step for flag in (step.flag, *step.also)}

    def variables(self) -> frozenset[str]:
        """Every environment variable that a proposer may set."""
        moves = {name for move in self.move for name in (*move.set_env, *move.removed_env)}
        return frozenset(self.env) | moves

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [move.id for move in self.move]
        if len(ids) != len(set(ids)):
            raise ValueError(f"two moves share an id: {sorted(i for i in ids if ids.count(i) > 1)}")
        for move in self.move:
            for other in (*move.on_success, *move.on_failure):
                if other not in ids:
                    raise ValueError(f"move {move.id} names {other}, which does not exist")
            _check_names(move.expressions(), f"move {move.id}")
        for step in self.step:
            _check_names(step.expressions(), f"step {step.flag}", extra={"value"})
        for avoid in self.avoid:
            _check_names((avoid.when,), f"avoid {avoid.flag}")
        return self


def _check_names(
    expressions: tuple[str, ...], where: str, extra: frozenset[str] | set[str] = frozenset()
) -> None:
    known = FACT_NAMES | FUNCTION_NAMES | extra
    for expression in expressions:
        try:
            unknown = names(expression) - known
        except ExpressionError as error:
            raise ValueError(f"{where}: {error}") from error
        if unknown:
            raise ValueError(f"{where}: {expression!r} uses {sorted(unknown)}, which is no fact or function")


def parse_book(text: str, name: str) -> Book:
    """The book in a TOML text; raises InputError that names the file and the fault."""
    try:
        return Book.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise InputError(f"playbook file {name} cannot be used: {error}") from error


@lru_cache(maxsize=8)
def load_book(engine: str, folder: Path | None = None) -> Book:
    """The book of an engine; an empty one for an engine that the playbook does not know."""
    source = (folder or files("moeagent.agent.proposers.moves")) / f"{engine}.toml"
    if not source.is_file():
        return Book(engine=engine)
    return parse_book(source.read_text("utf-8"), source.name)
