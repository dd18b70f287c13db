"""The knowledge as data, checked at load: message signatures, failure classes, components and words."""

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import re2
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from moeagent.memory.errors import InputError
from moeagent.memory.records.diagnosis import Direction, Stage

FOLDER = Path(__file__).parent
Kind = Literal["cause", "symptom", "benign", "health"]
Mark = Literal["progress", "ready", "served", "failed_request", "asked_to_stop", "ended", "stalled", "launch"]
E = TypeVar("E", bound="Entry")


class Entry(BaseModel):
    """Base of every entry: unknown fields are errors, so a typing slip in a file is found at load."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, use_attribute_docstrings=True
    )


def _check_pattern(pattern: str) -> None:
    try:
        compiled(pattern)
    except re2.error as exc:
        raise ValueError(f"not a valid RE2 pattern: {pattern!r}: {exc}") from exc


@cache
def compiled(pattern: str) -> Any:
    """A compiled RE2 pattern: linear time whatever the text, so a hostile line cannot stall the scan."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


class When(Entry):
    """A condition on the whole log around a root line; every field that is given must hold."""

    engine: tuple[str, ...] = ()
    stage: tuple[Stage, ...] = ()
    line: str | None = None
    """Pattern on the root line itself."""
    trace: str | None = None
    """Pattern on the stack frames of the exception that the root line ends."""
    before: str | None = None
    """Pattern on some line at or above the root line."""
    after: str | None = None
    """Pattern on some line below the root line."""
    seen: str | None = None
    """Pattern on any line of the log."""
    unseen: str | None = None
    """Pattern that no line of the log matches."""
    flag: str | None = None
    """A flag or environment variable in force, as `name` or `name=value`, read from the log's own dumps."""
    noflag: str | None = None
    compare: tuple[tuple[str, Literal["<", ">"], str], ...] = ()
    """Comparisons between extracted numbers or literals, such as ["free", "<", "requested"]."""

    @model_validator(mode="after")
    def _patterns_compile(self) -> Self:
        for pattern in (self.line, self.trace, self.before, self.after, self.seen, self.unseen):
            if pattern is not None:
                _check_pattern(pattern)
        return self


class Step(Entry):
    """How a numeric flag moves from its value in the log; no step is given where the log does not tell it."""

    flag: str
    by: float = 0.0
    factor: float = 1.0
    floor: float | None = None
    ceiling: float | None = None
    shortfall: tuple[str, str, str] | None = None
    """Names of the numbers (requested, free, total): the step covers their shortfall of the total."""


class RemedyRule(Entry):
    """One change; `{name}` in the texts is filled from what was extracted from the log."""

    target: str
    direction: Direction
    change: str
    why: str
    source: str | None = None
    """Where the advice comes from; the owning entry's source when not given."""
    value: str | None = None
    """A template for the exact new value, when the log's numbers decide it."""
    step: Step | None = None
    choice: bool = False
    """The flag chooses one of several: adding and replacing are the same act."""
    when: When | None = None


class Refinement(Entry):
    """In this context the message belongs to another class, or another line is the cause."""

    when: When
    failure_class: str | None = Field(default=None, alias="class")
    root: str | None = None
    """Pattern of the line that is the cause instead, searched from the top."""
    weight: int | None = None
    remedies: tuple[RemedyRule, ...] = ()


class Signature(Entry):
    """One message that a program prints, what it means and what to do about it."""

    id: str
    engine: tuple[str, ...] = ("any",)
    versions: str = "all"
    stage: Stage | None = None
    """Where in the server's life the message belongs; None when it can come anywhere."""
    kind: Kind
    failure_class: str | None = Field(default=None, alias="class")
    pattern: str
    extract: tuple[str, ...] = ()
    """Further patterns with named groups, applied to the line and to the lines that continue its message."""
    weight: int = Field(default=70, ge=0, le=100)
    """How close to the cause: 90 hardware and host facts, 70 a message that names its cause, 50 a general
    error, 30 time-outs and watchdogs, which mostly report somebody else's failure."""
    mark: Mark | None = None
    frequent: bool = False
    """Printed for every request or step: not worth finding in a huge log."""
    survivable: bool = False
    """The failure is real although the server goes on (a request fails, an answer is wrong)."""
    printed_quietly: bool = False
    """The program prints it below the level ERROR although it is a cause."""
    headline: bool = False
    """A headline: the traceback that it quotes follows, and the line there is the one to show."""
    hides_line: bool = False
    """The line holds words of other messages that mean nothing here (a dump, a skipped tactic)."""
    means: str
    refine: tuple[Refinement, ...] = ()
    remedies: tuple[RemedyRule, ...] = ()
    source: str

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for pattern in (self.pattern, *self.extract):
            _check_pattern(pattern)
        if (self.kind == "cause") != (self.failure_class is not None):
            raise ValueError(f"{self.id}: a cause needs a class, and only a cause has one")
        if self.mark is not None and self.kind == "cause":
            raise ValueError(f"{self.id}: a mark belongs to health, symptom or benign lines")
        return self


class FailureClass(Entry):
    """One class of the taxonomy, in words, with the remedies that hold for all its messages."""

    name: str
    means: str
    stage: Stage | None = None
    """The stage to report when the class itself says it (host, client)."""
    confused_with: tuple[str, ...] = ()
    remedies: tuple[RemedyRule, ...] = ()
    source: str


class Component(Entry):
    """A part of an engine that stack frames reveal, and the knob that replaces it."""

    id: str
    frames: str
    """Pattern on a stack frame's file or function."""
    engine: tuple[str, ...] = ("any",)
    classes: tuple[str, ...]
    """Prefixes of the classes for which replacing the component is a remedy."""
    remedies: tuple[RemedyRule, ...]
    source: str


class Clue(Entry):
    """Words or frames that point to a class when no signature knows the message."""

    pattern: str
    on: Literal["message", "frames", "exception"]
    failure_class: str = Field(alias="class")
    weight: int = Field(ge=1, le=10)
    when: When | None = None
    source: str


class Catalogue(Entry):
    """All knowledge, cross-checked."""

    signatures: tuple[Signature, ...]
    classes: tuple[FailureClass, ...]
    components: tuple[Component, ...]
    clues: tuple[Clue, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [signature.id for signature in self.signatures]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        if twice:
            raise ValueError(f"signature ids used twice: {', '.join(twice)}")
        known = {entry.name for entry in self.classes}
        used = {signature.failure_class for signature in self.signatures if signature.failure_class}
        used |= {one.failure_class for s in self.signatures for one in s.refine if one.failure_class}
        used |= {clue.failure_class for clue in self.clues}
        if used - known:
            raise ValueError(f"classes outside the taxonomy: {', '.join(sorted(used - known))}")
        return self

    def signature(self, signature_id: str) -> Signature:
        """The signature of that id; raises InputError with the nearest ids when there is none."""
        for signature in self.signatures:
            if signature.id == signature_id:
                return signature
        from rapidfuzz import process

        near = [
            name for name, _, _ in process.extract(signature_id, [s.id for s in self.signatures], limit=3)
        ]
        raise InputError(f"no signature {signature_id!r}; the nearest ids are {', '.join(near)}")

    def failure_class(self, name: str) -> FailureClass:
        """The taxonomy entry of that name; raises KeyError."""
        return self._by_name()[name]

    def _by_name(self) -> dict[str, FailureClass]:
        return {entry.name: entry for entry in self.classes}

    def without_class(self, name: str) -> "Catalogue":
        """The same knowledge without the signatures of one class, to test the structural reasoning."""
        kept = tuple(s for s in self.signatures if s.failure_class != name)
        return self.model_copy(update={"signatures": kept})


def load_catalogue(extra: Iterable[Path] = ()) -> Catalogue:
    """The package's knowledge and the user's signature files. Raises InputError naming file and entry."""
    return _load(tuple(extra))


@cache
def _load(extra: tuple[Path, ...]) -> Catalogue:
    own = sorted((FOLDER / "signatures").glob("*.toml"))
    signatures = [one for path in (*extra, *own) for one in _entries(path, "signature", Signature)]
    taken: dict[str, Signature] = {}
    for signature in signatures if extra else ():
        taken.setdefault(signature.id, signature)
    try:
        return Catalogue(
            signatures=tuple(taken.values()) if extra else tuple(signatures),
            classes=tuple(_entries(FOLDER / "knowledge" / "classes.toml", "class", FailureClass)),
            components=tuple(_entries(FOLDER / "knowledge" / "components.toml", "component", Component)),
            clues=tuple(_entries(FOLDER / "knowledge" / "clues.toml", "clue", Clue)),
        )
    except ValidationError as exc:
        raise InputError(f"the signatures do not fit together: {exc.errors()[0]['msg']}") from exc


def _entries(path: Path, table: str, model: type[E]) -> list[E]:
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as exc:
        raise InputError(
            f"cannot read the signature file {path}: {exc.strerror}; check --signatures"
        ) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise InputError(f"{path} is not valid TOML: {exc}") from exc
    if set(data) - {table}:
        raise InputError(f"{path}: expected only [[{table}]] tables, found {', '.join(sorted(data))}")
    return [_validated(path, number, row, model) for number, row in enumerate(data.get(table, []), 1)]


def _validated(path: Path, number: int, row: object, model: type[E]) -> E:
    try:
        return model.model_validate(row)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        name = (
            row.get("id", row.get("name", f"entry {number}")) if isinstance(row, dict) else f"entry {number}"
        )
        raise InputError(f"{path}: {name}: {where}: {first['msg']}") from exc
