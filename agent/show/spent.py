"""Time, machine, money and language-model tokens that a run took, read from its tape."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moeagent.memory.ledger import Ledger
from moeagent.memory.records import Launch
from moeagent.memory.tape.lines import Entry, Json

SHARES = {
    "starting servers": ("start",),
    "stopping servers": ("stop",),
    "surveying": ("survey",),
    "checking answers": ("outputs", "task", "calibrate", "first_prompt"),
    "the language model": ("complete",),
    "waiting for a person": ("approve",),
}
OWN = "the loop itself"


@dataclass(frozen=True)
class LaunchesTook:
    """What some launches took together."""

    starting_s: float
    measuring_s: float
    energy_kwh: float | None
    """Of the measured rungs; None when the host does not report energy."""


def took(launches: Sequence[Launch]) -> LaunchesTook:
    """Add up what each launch says of itself."""
    rungs = [rung for launch in launches for rung in launch.rungs]
    joules = [rung.energy_j for rung in rungs if rung.energy_j is not None]
    return LaunchesTook(
        starting_s=sum(launch.ready_after_s or 0.0 for launch in launches),
        measuring_s=sum(rung.duration_s for rung in rungs),
        energy_kwh=sum(joules) / 3.6e6 if joules else None,
    )


@dataclass(frozen=True)
class Spent:
    """Totals of one run."""

    active_s: float
    """Time that the loop was at work, by its own clock; pauses between a stop and a resume are not in it."""
    starting_s: float
    measuring_s: float
    launches: int
    failed_launches: int
    hypotheses: int
    machine_cost: float | None
    """active_s at the machine's hourly price; None when no price was set."""
    energy_kwh: float | None
    """Of the measured rungs; None when the host does not report energy."""
    model_calls: int
    model_tokens: int
    model_cost: float | None
    """None when the endpoint has no price."""
    launched_at_s: dict[str, float] = field(default_factory=dict)
    """When each launch ended, in seconds of active time."""
    effects_s: dict[str, float] = field(default_factory=dict)
    """Seconds that each kind of effect took; empty for a tape that does not say."""
    own_s: float = 0.0
    """Seconds between the effects: what the loop itself took."""

    @property
    def accounted_s(self) -> float:
        """All seconds that the tape accounts for."""
        return sum(self.effects_s.values()) + self.own_s

    @property
    def shares(self) -> dict[str, float]:
        """Seconds by what they were spent on, all that the tape accounts for; empty where it does not say."""
        if not self.effects_s:
            return {}
        known = {name: sum(self.effects_s.get(kind, 0.0) for kind in kinds) for name, kinds in SHARES.items()}
        loads = self.effects_s.get("load", 0.0)
        return {
            **known,
            "warming up and draining": max(0.0, loads - self.measuring_s),
            "measuring": min(loads, self.measuring_s),
            "other effects": sum(self.effects_s.values()) - loads - sum(known.values()),
            OWN: self.own_s,
        }


def spent(header: Json, entries: Iterable[Entry], ledger: Ledger) -> Spent:
    """Count what the tape holds."""
    settings = header["settings"]
    recorded = tuple(entries)
    ticks, completions, launched = _walk(recorded)
    effects_s, own_s = _time_split(recorded)
    launches = took(ledger.launches)
    price = settings["host"].get("price_per_hour")
    return Spent(
        active_s=ticks,
        starting_s=launches.starting_s,
        measuring_s=launches.measuring_s,
        launches=len(ledger.launches),
        failed_launches=sum(launch.diagnosis is not None for launch in ledger.launches),
        hypotheses=len(ledger.hypotheses),
        machine_cost=ticks / 3600 * price if price else None,
        energy_kwh=launches.energy_kwh,
        model_calls=len(completions),
        model_tokens=sum(_tokens(c, "input_tokens") + _tokens(c, "output_tokens") for c in completions),
        model_cost=_model_cost(settings.get("llm", {}), completions),
        launched_at_s=launched,
        effects_s=effects_s,
        own_s=own_s,
    )


def _time_split(entries: Iterable[Entry]) -> tuple[dict[str, float], float]:
    """Seconds by kind of effect, and between effects."""
    kind, effects, own = "", dict[str, float](), 0.0
    for entry in entries:
        if entry.type == "request":
            kind = entry.body["kind"]
        elif entry.type == "response" and "took_s" in entry.body:
            effects[kind] = effects.get(kind, 0.0) + entry.body["took_s"]
            own += entry.body["own_s"]
    return effects, own


def _walk(entries: Iterable[Entry]) -> tuple[float, list[Json], dict[str, float]]:
    """The last reading of the clock, the answers of the language model, and the clock after each launch."""
    ticks, kind = 0.0, ""
    completions: list[Json] = []
    launched: dict[str, float] = {}
    waiting: list[str] = []
    for entry in entries:
        if entry.type == "request":
            kind = entry.body["kind"]
        elif entry.type == "decision" and entry.body["kind"] == "launch":
            waiting.append(entry.body["value"]["id"])
        elif entry.type == "response" and "response" in entry.body:
            answer = entry.body["response"]
            if kind == "complete":
                completions.append(answer)
            elif kind == "clock":
                ticks = float(answer["active_s"])
                launched |= dict.fromkeys(waiting, ticks)
                waiting.clear()
    return ticks, completions, launched


def _tokens(completion: Json, name: str) -> int:
    value: Any = completion.get(name, 0)
    return value if isinstance(value, int) else 0


def _model_cost(llm: Json, completions: list[Json]) -> float | None:
    prices = [llm.get(f"price_per_million_{side}") or 0.0 for side in ("input", "output")]
    if not any(prices):
        return None
    totals = [sum(_tokens(c, f"{side}_tokens") for c in completions) for side in ("input", "output")]
    return sum(price * total for price, total in zip(prices, totals, strict=True)) / 1e6
