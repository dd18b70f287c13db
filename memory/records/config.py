"""A server configuration and the change of one against another."""

from collections.abc import Container
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from moeagent.memory.records.base import Record, fingerprint

FlagValue = StrictBool | StrictInt | StrictFloat | StrictStr
"""True is a flag without a value; False is never stored (an absent flag is off)."""


def _is_flag(name: str) -> str:
    if not name.startswith("-") or "=" in name or any(c.isspace() for c in name):
        raise ValueError(f"{name!r} is not a flag name: write it with its leading dashes, e.g. --tp-size")
    return name


def _is_env(name: str) -> str:
    if not name.replace("_", "a").isalnum() or name[0].isdigit() or not name.isascii():
        raise ValueError(f"{name!r} is not an environment variable name")
    return name


FlagName = Annotated[str, AfterValidator(_is_flag)]
EnvName = Annotated[str, AfterValidator(_is_env)]


class ConfigChange(Record):
    """What a hypothesis changes against its parent configuration."""

    set_flags: dict[FlagName, FlagValue] = Field(default_factory=dict)
    remove_flags: tuple[FlagName, ...] = ()
    set_env: dict[EnvName, str] = Field(default_factory=dict)
    remove_env: tuple[EnvName, ...] = ()
    install: str | None = None
    """Name of one of the user's engine installs; None keeps the parent's."""

    def is_empty(self) -> bool:
        """True when nothing would change."""
        return self == ConfigChange()

    def only(self, knobs: Container[str]) -> Self:
        """What of the change touches these flags and variables."""
        return self.model_copy(
            update={
                "set_flags": {k: v for k, v in self.set_flags.items() if k in knobs},
                "remove_flags": tuple(k for k in self.remove_flags if k in knobs),
                "set_env": {k: v for k, v in self.set_env.items() if k in knobs},
                "remove_env": tuple(k for k in self.remove_env if k in knobs),
                "install": None,
            }
        )

    def knobs(self) -> tuple[str, ...]:
        """Names of everything that the change touches, sorted."""
        names = {*self.set_flags, *self.remove_flags, *self.set_env, *self.remove_env}
        return tuple(sorted(names | ({"install"} if self.install else set())))


class ServerConfig(Record):
    """Flags, environment variables and the engine install: all three are knobs, all three are read back.

    Host, port and model path are not knobs; the engine adds them when it builds the command.
    """

    engine: str
    flags: dict[FlagName, FlagValue] = Field(default_factory=dict)
    env: dict[EnvName, str] = Field(default_factory=dict)
    install: str = "default"

    @property
    def id(self) -> str:
        """Identity by content: equal configurations have equal ids, whatever the order of their flags."""
        return fingerprint(self.model_dump(mode="json"))

    def apply(self, change: ConfigChange) -> Self:
        """The configuration after the change."""
        flags = {k: v for k, v in self.flags.items() if k not in change.remove_flags} | change.set_flags
        env = {k: v for k, v in self.env.items() if k not in change.remove_env} | change.set_env
        flags = {k: v for k, v in flags.items() if v is not False}
        return self.model_copy(update={"flags": flags, "env": env, "install": change.install or self.install})

    def diff(self, other: "ServerConfig") -> ConfigChange:
        """The change that leads from this configuration to the other."""
        return ConfigChange(
            set_flags={k: v for k, v in other.flags.items() if k not in self.flags or self.flags[k] != v},
            remove_flags=tuple(sorted(self.flags.keys() - other.flags.keys())),
            set_env={k: v for k, v in other.env.items() if self.env.get(k) != v},
            remove_env=tuple(sorted(self.env.keys() - other.env.keys())),
            install=other.install if other.install != self.install else None,
        )
