"""One flag has many spellings: aliases, renames between versions. Comparisons must see through them."""

from collections.abc import Iterable, Mapping

from moeagent.memory.records import ConfigChange, EngineFacts, FlagValue, Knob, ServerConfig


class Spelling:
    """Finds a flag under whatever name the engine, the book or the user gave it."""

    def __init__(
        self,
        engine: EngineFacts,
        aliases: Mapping[str, tuple[str, ...]] | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self.engine = engine
        self._groups: dict[str, tuple[str, ...]] = {}
        for name, others in (aliases or {}).items():
            self._join((name, *others))
        for knob in engine.knobs:
            self._join((knob.name, *knob.aliases))
        self._renamed = dict(renamed or {})

    def _join(self, names: tuple[str, ...]) -> None:
        group = tuple(dict.fromkeys(n for name in names for n in self._groups.get(name, (name,))))
        for name in group:
            self._groups[name] = group

    def all(self, name: str) -> tuple[str, ...]:
        """Every spelling of the flag, its own first."""
        group = self._groups.get(name, (name,))
        newer = self._renamed.get(name)
        return (*group, *self._groups.get(newer, (newer,))) if newer and newer not in group else group

    def canonical(self, name: str) -> str:
        """The one spelling by which two flags are compared."""
        knob = self.declared(name)
        return knob.name if knob else self.all(name)[0]

    def find(self, name: str, present: Iterable[str]) -> str | None:
        """The spelling of the flag among the names present."""
        spellings = self.all(name)
        return next((p for p in present if p in spellings), None)

    def declared(self, name: str) -> Knob | None:
        """The engine's own entry for the flag, unless the flag was removed or is never read."""
        for spelling in self.all(name):
            knob = self.engine.knob(spelling)
            if knob is not None and knob.status in ("current", "deprecated"):
                return knob
        return None

    def effective_keys(self, name: str) -> tuple[str, ...]:
        """Names under which an engine may report the flag's value."""
        plain = (spelling.lstrip("-") for spelling in self.all(name))
        return tuple(key for p in plain for key in (f"--{p}", f"-{p}", p, p.replace("-", "_")))

    def respell(self, change: ConfigChange, config: ServerConfig) -> ConfigChange:
        """The change in the configuration's own spelling, so that it replaces and never doubles a flag."""
        flags = {self._target(name, config): value for name, value in change.set_flags.items()}
        removed = (self.find(name, config.flags) for name in change.remove_flags)
        return change.model_copy(
            update={"set_flags": flags, "remove_flags": tuple(sorted({r for r in removed if r}))}
        )

    def _target(self, name: str, config: ServerConfig) -> str:
        present = self.find(name, config.flags)
        if present:
            return present
        knob = self.declared(name)
        return name if knob is None or name in (knob.name, *knob.aliases) else knob.name

    def effective_key(self, config: ServerConfig) -> str:
        """Equal for configurations that start the same server, as far as the engine's table can tell."""
        flags = {self.canonical(n): v for n, v in config.flags.items() if not self._is_default(n, v)}
        return config.model_copy(update={"flags": flags}).id

    def _is_default(self, name: str, value: FlagValue) -> bool:
        knob = self.declared(name)
        return knob is not None and knob.default is not None and knob.default == value
