"""Time, machine, money and language-model tokens that a run took, read from its tape."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from moeagent.memory.ledger import Ledger
from moeagent.memory.tape.lines import Entry, Json


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


def spent(header: Json, entries: Iterable[Entry], ledger: Ledger) -> Spent:
    """Count what the tape holds."""
    settings = header["settings"]
    ticks, completions, launched = _walk(entries)
    rungs = [rung for launch in ledger.launches for rung in launch.rungs]
    joules = [rung.energy_j for rung in rungs if rung.energy_j is not None]
    price = settings["host"].get("price_per_hour")
    return Spent(
        active_s=ticks,
        starting_s=sum(launch.ready_after_s or 0.0 for launch in ledger.launches),
        measuring_s=sum(rung.duration_s for rung in rungs),
        launches=len(ledger.launches),
        failed_launches=sum(launch.diagnosis is not None for launch in ledger.launches),
        hypotheses=len(ledger.hypotheses),
        machine_cost=ticks / 3600 * price if price else None,
        energy_kwh=sum(joules) / 3.6e6 if joules else None,
        model_calls=len(completions),
        model_tokens=sum(_tokens(c, "input_tokens") + _tokens(c, "output_tokens") for c in completions),
        model_cost=_model_cost(settings.get("llm", {}), completions),
        launched_at_s=launched,
    )


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
