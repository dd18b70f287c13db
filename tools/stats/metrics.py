"""Metrics of a rung and bounds on them; what was not measured never holds a bound."""

from collections.abc import Sequence

from moeagent.memory.records import Constraint, Rung

_LATENCIES = ("ttft", "tpot", "itl", "e2e")
_AT_LEAST = ("output_tok_s", "goodput_rps")


def metric(rung: Rung, constraint: Constraint) -> float | None:
    """The constrained metric in the constraint's unit (seconds, tok/s, req/s, 0..1); None when not measured.

    A latency without a percentile means its p99.
    """
    if constraint.metric == "error_rate":
        asked = rung.completed + rung.failed
        return rung.failed / asked if asked else None
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
    if rung.invalid or rung.completed == 0 or rung.output_tok_s is None:
        reasons.append(f"concurrency {rung.concurrency}: {rung.invalid or 'nothing was measured'}")
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
