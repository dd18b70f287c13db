"""Flags and variables that are never passed on, with the reason for each (data/denied.toml)."""

import tomllib
from functools import cache
from importlib.resources import files

from moeagent.memory.records import Record
from moeagent.tools.engines.catalogue import catalogue


class DeniedFlag(Record):
    """A flag that is refused, under all its names."""

    name: str
    engines: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    reason: str
    allowable: bool = False
    """The user may allow it for one of the engine installs."""


class DeniedEnv(Record):
    """An environment variable that is refused."""

    name: str
    reason: str
    allowable: bool = False


class DenyList(Record):
    """Everything that is refused."""

    source: str
    flag: tuple[DeniedFlag, ...]
    env: tuple[DeniedEnv, ...]


@cache
def deny_list() -> DenyList:
    """The deny list as data."""
    path = files("moeagent.tools.engines") / "data" / "denied.toml"
    return DenyList.model_validate(tomllib.loads(path.read_text()))


def denied_flag(engine: str, flag: str, *, allow: tuple[str, ...] = ()) -> str | None:
    """Why this flag is refused, or None. So is a prefix that argparse would complete to one."""
    spelling = flag.split(".", 1)[0].replace("_", "-")
    known = catalogue(engine).entry(spelling) is not None
    for entry in deny_list().flag:
        if engine not in entry.engines or (entry.allowable and entry.name in allow):
            continue
        for name in (entry.name, *entry.aliases):
            if spelling == name or (not known and spelling.startswith("--") and name.startswith(spelling)):
                return entry.reason
    return None


def denied_env(name: str, *, allow: tuple[str, ...] = ()) -> str | None:
    """Why this environment variable is refused, or None."""
    found = next((entry for entry in deny_list().env if entry.name == name.upper()), None)
    if found is None or (found.allowable and found.name in allow):
        return None
    return found.reason
