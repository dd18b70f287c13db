"""Metrics of a rung and bounds on them; what was not measured never holds a bound."""

from collections.abc import Sequence

from moeagent.memory.records import Constraint, Goal, Rung

_LATENCIES = ("ttft", "tpot", "itl", "e2e")
_AT_LEAST = ("output_tok_s", "goodput_rps")


def metric(rung: Rung, constraint: Constraint) -> float | None:
    """The constrained metric in the constraint's unit (seconds, tok/s, req/s, 0..1); None when not measured.

    A latency without a percentile means its p99.
    """
    if constraint.metric == "error_rate":
        asked = rung.completed + rung.failed
        return rung.failed / asked if asked else None
    if rung.invalid and constraint.metric in (*_LATENCIES, "goodput_rps"):
        return None
    if constraint.metric in _LATENCIES:
        spread = getattr(rung, f"{constraint.metric}_ms")
        return None if spread is None else getattr(spread, constraint.percentile or "p99") / 1000
    value: float | None = getattr(rung, constraint.metric)
    return value


def broken(rung: Rung, constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Why the rung may not count towards the goal: unusable, failed requests, or a bound that is not held.

    Failed requests are tolerated only below an error-rate bound that the user states.
    """
    reasons = []
    if rung.throughput_invalid or rung.completed == 0 or rung.output_tok_s is None:
        why = rung.throughput_invalid or "nothing was measured"
        reasons.append(f"concurrency {rung.concurrency}: {why}")
    elif rung.failed and not any(c.metric == "error_rate" for c in constraints):
        reasons.append(f"concurrency {rung.concurrency}: {rung.failed} failed requests")
    reasons += [text for c in constraints if (text := _broken_bound(rung, c))]
    return tuple(reasons)


def _broken_bound(rung: Rung, constraint: Constraint) -> str:
    value = metric(rung, constraint)
    name = "_".join(filter(None, (constraint.metric, constraint.percentile)))
    if value is None:
        return f"concurrency {rung.concurrency}: {name} was not measured"
    at_least = constraint.metric in _AT_LEAST
    if value >= constraint.bound if at_least else value <= constraint.bound:
        return ""
    side = "below" if at_least else "above"
    return f"concurrency {rung.concurrency}: {name} {value:.4g} is {side} {constraint.bound:g}"


def unknown(goal: Goal, rung: Rung) -> bool:
    """Whether the rung was measured badly, so that it speaks neither for nor against the server."""
    return bool(rung.invalid if needs_latency(goal) else rung.throughput_invalid)


def needs_latency(goal: Goal) -> bool:
    """Whether the goal or one of its constraints rests on latencies."""
    by_latency = (*_LATENCIES, "goodput_rps")
    return goal.name in ("min-latency", "max-goodput") or any(
        c.metric in by_latency for c in goal.constraints
    )
