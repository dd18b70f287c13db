"""A user's own world behind checks: whatever it does wrong ends the contest with a named error.

`module.py:factory` names a function of a seed that returns an object with the members of `BenchWorld`.
"""

import importlib.util
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from moeagent.memory.errors import InputError
from moeagent.memory.records import ServerConfig, Workload
from moeagent.tools.sim.space import SpaceKnob
from moeagent.tools.sim.virtual import VirtualOutcome
from moeagent.tools.sim.worlds import BenchWorld, WorldFacts

DEADLINE_S = 60.0
"""Longest time that one call of a user's world may take."""
MEMBERS = ("name", "baseline", "workload", "facts", "space", "launch", "value", "oracle")
T = TypeVar("T")


def load_factory(spec: str) -> Callable[[int], Any]:
    """The factory that `module.py:factory` names. Raises InputError."""
    path_text, _, name = spec.rpartition(":")
    path = Path(path_text)
    if not path_text or not name:
        raise InputError(f"--world {spec}: write module.py:factory")
    if not path.is_file():
        raise InputError(f"--world {spec}: there is no file {path_text}")
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    if module_spec is None or module_spec.loader is None:
        raise InputError(f"--world {spec}: {path_text} is not a Python module")
    module = importlib.util.module_from_spec(module_spec)
    within(f"{path_text}: importing it", lambda: _loaded(module_spec, module), DEADLINE_S)
    factory = getattr(module, name, None)
    if not callable(factory):
        raise InputError(f"--world {spec}: {path_text} has no function {name}")
    made: Callable[[int], Any] = factory
    return made


def _loaded(spec: Any, module: Any) -> None:
    spec.loader.exec_module(module)


def guarded_world(factory: Callable[[int], Any], seed: int, deadline_s: float = DEADLINE_S) -> "GuardedWorld":
    """The world of a seed, checked. Raises InputError when the factory fails or members are missing."""
    name = getattr(factory, "__name__", "factory")
    world = within(f"{name}({seed})", lambda: factory(seed), deadline_s)
    missing = [member for member in MEMBERS if not hasattr(world, member)]
    if missing:
        raise InputError(f"the world that {name}({seed}) made lacks {', '.join(missing)}: see BenchWorld")
    guarded = GuardedWorld(world, deadline_s)
    for member, kind in (("name", str), ("baseline", ServerConfig), ("workload", Workload)):
        if not isinstance(getattr(guarded, member), kind):
            raise InputError(f"the world that {name}({seed}) made: {member} is no {kind.__name__}")
    return guarded


@dataclass(frozen=True)
class GuardedWorld:
    """A `BenchWorld` whose every answer is awaited for a bounded time and checked."""

    world: BenchWorld
    deadline_s: float = DEADLINE_S

    @property
    def name(self) -> str:
        """The world's own name."""
        return self._ask("name", lambda: self.world.name)

    @property
    def baseline(self) -> ServerConfig:
        """The configuration that every policy starts from."""
        return self._ask("baseline", lambda: self.world.baseline)

    @property
    def workload(self) -> Workload:
        """The load and its ladder."""
        return self._ask("workload", lambda: self.world.workload)

    def facts(self) -> WorldFacts:
        """The machine, the engine and the model."""
        return self._checked("facts", self._ask("facts", self.world.facts), WorldFacts)

    def space(self) -> tuple[SpaceKnob, ...]:
        """The knobs and values that a search may try."""
        return tuple(self._ask("space", self.world.space))

    def launch(self, config: ServerConfig, workload: Workload, nonce: int) -> VirtualOutcome:
        """One noisy launch; every figure is a finite number. Raises InputError otherwise."""
        outcome = self._ask("launch", lambda: self.world.launch(config, workload, nonce))
        self._checked("launch", outcome, VirtualOutcome)
        figures = {"cost_s": outcome.cost_s} | {
            f"output_tok_s at concurrency {rung.concurrency}": rung.output_tok_s for rung in outcome.rungs
        }
        for what, figure in figures.items():
            if figure is not None and not (math.isfinite(figure) and figure >= 0):
                raise self._error(f"launch gave {what} = {figure}: a finite number is needed, or a crash")
        return outcome

    def value(self, config: ServerConfig) -> float | None:
        """Noise-free output tokens/s; None when it crashes."""
        value = self._ask("value", lambda: self.world.value(config))
        if value is not None and not math.isfinite(value):
            raise self._error(f"value gave {value}: a finite number is needed, or None for a crash")
        return value

    def oracle(self) -> tuple[ServerConfig, float]:
        """The best configuration and its value, above zero."""
        config, value = self._ask("oracle", self.world.oracle)
        if not (math.isfinite(value) and value > 0):
            raise self._error(f"oracle gave the value {value}: a finite number above zero is needed")
        return config, value

    def _ask(self, member: str, call: Callable[[], T]) -> T:
        return within(f"{type(self.world).__name__}.{member}", call, self.deadline_s)

    def _checked(self, member: str, value: T, kind: type) -> T:
        if not isinstance(value, kind):
            raise self._error(f"{member} gave a {type(value).__name__}, not a {kind.__name__}")
        return value

    def _error(self, what: str) -> InputError:
        return InputError(f"world {type(self.world).__name__}: {what}")


def within(what: str, call: Callable[[], T], deadline_s: float) -> T:
    """The call's result. Raises InputError when a user's code raises, or does not return in time."""
    got: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            got.append(call())
        except BaseException as error:  # noqa: BLE001 - anything may come out of a user's module
            raised.append(error)

    # A daemon: a call that hangs is left behind and does not keep the process alive.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(deadline_s)
    if raised:
        error = raised[0]
        raise InputError(f"the user's world: {what} raised {type(error).__name__}: {error}") from error
    if not got:
        raise InputError(f"the user's world: {what} did not return within {deadline_s:g} s")
    return got[0]
