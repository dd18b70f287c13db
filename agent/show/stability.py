"""Where each configuration works and where it stops working."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from moeagent.agent.show.curves import Launched, launched
from moeagent.memory.records import Launch, Rung
from moeagent.memory.run_view import RunView

State = Literal["serves", "failed", "not usable", "not tried"]


@dataclass(frozen=True)
class Row:
    """One configuration over the concurrencies of `Boundary`."""

    label: str
    states: tuple[State, ...]
    last_good: int | None
    first_failed: int | None
    outcomes: str
    """How its launches ended, counted."""


@dataclass(frozen=True)
class Boundary:
    """Every configuration against every concurrency that was tried."""

    concurrencies: tuple[int, ...]
    rows: tuple[Row, ...]


def boundary(view: RunView) -> Boundary:
    """The whole picture, in the order of first launches."""
    tried = {rung.concurrency for launch in view.ledger.launches for rung in launch.rungs}
    concurrencies = tuple(sorted({*tried, *view.ladder}))
    return Boundary(concurrencies, tuple(_row(each, concurrencies) for each in launched(view)))


def _row(each: Launched, concurrencies: Sequence[int]) -> Row:
    launches = each.launches
    states = tuple(_state(launches, c) for c in concurrencies)
    serving = [c for c, state in zip(concurrencies, states, strict=True) if state == "serves"]
    failing = [c for c, state in zip(concurrencies, states, strict=True) if state == "failed"]
    kinds = [launch.outcome.value for launch in launches]
    return Row(
        label=each.label,
        states=states,
        last_good=max(serving, default=None),
        first_failed=min(failing, default=None),
        outcomes=", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)),
    )


def _state(launches: Sequence[Launch], concurrency: int) -> State:
    """Failed wins over served: one death at a concurrency is what the reader must know."""
    rungs = [rung for launch in launches for rung in launch.rungs if rung.concurrency == concurrency]
    if any(_failed(rung) for rung in rungs):
        return "failed"
    if any(rung.usable for rung in rungs):
        return "serves"
    return "not usable" if rungs else "not tried"


def _failed(rung: Rung) -> bool:
    return rung.failed > 0 or rung.completed == 0
