"""Whether a configuration holds what the goal demands, at each concurrency that was measured."""

from dataclasses import dataclass

from moeagent.memory.records import Constraint, Goal, Rung, ServerConfig
from moeagent.memory.run_view import RunView
from moeagent.tools.stats.metrics import broken, metric

AT_LEAST = ("output_tok_s", "goodput_rps")
UNITS = {"output_tok_s": " tok/s", "goodput_rps": " req/s", "error_rate": ""}


@dataclass(frozen=True)
class Check:
    """One bound at one concurrency, by the worst launch."""

    bound: str
    concurrency: int
    worst: str
    holds: bool


def goal_of(view: RunView) -> Goal:
    """What the run optimises, with its constraints."""
    return Goal.model_validate(view.goal_settings)


def constraint_text(constraint: Constraint) -> str:
    """Such as `ttft p99 at most 2 s`."""
    name = " ".join(filter(None, (constraint.metric, constraint.percentile)))
    side = "at least" if constraint.metric in AT_LEAST else "at most"
    return f"{name} {side} {_value(constraint, constraint.bound)}"


def checks(view: RunView, config: ServerConfig) -> tuple[Check, ...]:
    """Every bound at every concurrency that the configuration's launches reached."""
    rungs: dict[int, list[Rung]] = {}
    for launch in view.ledger.launches_of(config):
        for rung in launch.rungs:
            rungs.setdefault(rung.concurrency, []).append(rung)
    return tuple(
        _check(constraint, concurrency, rungs[concurrency])
        for constraint in goal_of(view).constraints
        for concurrency in sorted(rungs)
    )


def constraints_sentence(view: RunView, config: ServerConfig) -> str:
    """In one sentence: what was demanded, and where the configuration holds all of it."""
    bounds = goal_of(view).constraints
    if not bounds:
        return "No constraint was set."
    found = checks(view, config)
    reached = sorted({check.concurrency for check in found})
    held = [c for c in reached if all(check.holds for check in found if check.concurrency == c)]
    demanded = ", ".join(constraint_text(bound) for bound in bounds)
    if not held:
        return f"It holds {demanded} at no concurrency that was measured."
    missed = [c for c in reached if c not in held]
    but = f", not at {', '.join(map(str, missed))}" if missed else ""
    return f"It holds {demanded} at concurrency {', '.join(map(str, held))}{but}."


def _check(constraint: Constraint, concurrency: int, rungs: list[Rung]) -> Check:
    known = [value for rung in rungs if (value := metric(rung, constraint)) is not None]
    worst = min if constraint.metric in AT_LEAST else max
    return Check(
        bound=constraint_text(constraint),
        concurrency=concurrency,
        worst=_value(constraint, worst(known)) if known else "not measured",
        holds=not any(broken(rung, (constraint,)) for rung in rungs),
    )


def _value(constraint: Constraint, value: float) -> str:
    if constraint.metric in UNITS:
        return f"{value:.4g}{UNITS[constraint.metric]}"
    return f"{value * 1000:.4g} ms" if value < 1 else f"{value:.4g} s"
