"""The built-in catalogues: flags and environment variables of the engines, version by version, with sources.

They stand in where an installed engine cannot be asked, and they know what an engine does not say of itself:
what was renamed, and what is accepted and read by nothing.
"""

import json
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field

from moeagent.memory.errors import InputError
from moeagent.memory.records import Knob, Record

Kind = Literal["bool", "int", "float", "str", "json"]
EVERY = "*"


class FlagEntry(Record):
    """One flag over the catalogued versions. A key or item `*` stands for every version."""

    name: str
    aliases: tuple[str, ...] = ()
    kind: Kind
    several: bool = False
    """Takes several values after one flag."""
    choices: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    defaults: dict[str, bool | int | float | str | None] = Field(default_factory=dict)
    versions: tuple[str, ...] = (EVERY,)
    """Catalogued versions that accept it."""
    deprecated: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Versions that accept it and read it nowhere."""
    replaced_by: str | None = None
    last_seen: str | None = None
    doc: str = ""
    auto_rule: str = ""
    source: str = ""

    def status(self, version: str) -> Literal["current", "deprecated", "removed", "unread"]:
        """Its status in one catalogued version."""
        if not _covers(self.versions, version):
            return "removed"
        if _covers(self.unread, version):
            return "unread"
        return "deprecated" if _covers(self.deprecated, version) else "current"

    def knob(self, version: str) -> Knob:
        """The flag as the given catalogued version has it."""
        text = " ".join(part for part in (self.doc, self.auto_rule and f"Auto: {self.auto_rule}.") if part)
        return Knob(
            name=self.name,
            kind=self.kind,
            choices=_at(self.choices, version),
            default=_at(self.defaults, version),
            aliases=self.aliases,
            help=text,
            status=self.status(version),
        )


class Catalogue(Record):
    """The flags of one engine."""

    engine: str
    source: str
    versions: tuple[str, ...]
    """Catalogued versions, oldest first."""
    flags: tuple[FlagEntry, ...]

    def entry(self, name: str) -> FlagEntry | None:
        """The flag of this name or alias."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, FlagEntry]:
        """The earlier flag wins a name, as a search in order would have it."""
        found: dict[str, FlagEntry] = {}
        for flag in self.flags:
            for name in (flag.name, *flag.aliases):
                found.setdefault(name, flag)
        return found

    def nearest_version(self, version: str | None) -> str:
        """The newest catalogued version that is not newer than the given one; else the oldest."""
        if version is None:
            return self.versions[-1]
        older = [known for known in self.versions if version_key(known) <= version_key(version)]
        return older[-1] if older else self.versions[0]

    def knobs(self, version: str | None) -> tuple[Knob, ...]:
        """Every flag that the nearest catalogued version accepts."""
        nearest = self.nearest_version(version)
        return tuple(flag.knob(nearest) for flag in self.flags if _covers(flag.versions, nearest))


class EnvEntry(Record):
    """One environment variable that moeagent may set."""

    name: str
    kind: Kind
    engines: tuple[str, ...]
    choices: tuple[str, ...] | None = None
    default: bool | int | float | str | None = None
    versions: tuple[str, ...] = (EVERY,)
    replaced_by: str | None = None
    doc: str = ""
    source: str

    def knob(self) -> Knob:
        """The variable as a knob."""
        return Knob(name=self.name, kind=self.kind, choices=self.choices, default=self.default, help=self.doc)


class Environment(Record):
    """The environment variables of all engines."""

    source: str
    variables: tuple[EnvEntry, ...]


def version_key(version: str) -> tuple[int, ...]:
    """Order of versions by their leading numbers: 0.5.9.post1 sorts as 0.5.9.1."""
    numbers = "".join(c if c.isdigit() else "." for c in version.split("+")[0]).split(".")
    return tuple(int(n) for n in numbers if n)


@cache
def catalogue(engine: str) -> Catalogue:
    """The flags of one engine. Raises InputError for an engine without a catalogue."""
    path = files("moeagent.tools.engines") / "data" / f"{engine}.json"
    if not path.is_file():
        raise InputError(f"There is no flag catalogue for engine {engine!r}; use sglang, vllm or llamacpp")
    return Catalogue.model_validate(json.loads(path.read_text()))


@cache
def env_catalogue(engine: str) -> tuple[EnvEntry, ...]:
    """The environment variables that one engine or its libraries read."""
    path = files("moeagent.tools.engines") / "data" / "environment.json"
    found = Environment.model_validate(json.loads(path.read_text())).variables
    return tuple(entry for entry in found if engine in entry.engines)


def _covers(versions: tuple[str, ...], version: str) -> bool:
    return EVERY in versions or version in versions


def _at(values: dict[str, Any], version: str) -> Any:
    return values.get(version, values.get(EVERY))
