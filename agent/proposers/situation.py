"""The incumbent's situation, read from the view: which rung the goal looks at, and what binds there."""

from moeagent.agent.proposers.book import Book
from moeagent.agent.proposers.expression import UnknownFactError
from moeagent.agent.proposers.facts import facts_of, functions_of
from moeagent.agent.proposers.limits import Limit, Situation, find_limits
from moeagent.agent.proposers.spelling import Spelling
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import Constraint, Rung

AS_GOOD = 0.05
"""Of rungs this close to the best the highest decides: what lifts the limit shows there first."""


def goal_rung(view: CampaignView) -> int:
    """The concurrency that ideas are aimed at: of the rungs that hold the constraints the highest that is as
    good as the best.

    Canary rungs are no part of the ladder: a gain is predicted for the ladder's rungs.
    """
    if view.goal.name == "min-latency":
        return min(view.workload.ladder)
    ladder = view.workload.ladder
    rungs = [
        rung
        for rung in view.rungs_of(view.incumbent)
        if rung.concurrency in ladder and _holds_all(rung, view.goal.constraints)
    ]
    best = max((r.output_tok_s or 0.0 for r in rungs), default=0.0)
    as_good = [r.concurrency for r in rungs if (r.output_tok_s or 0.0) >= best * (1 - AS_GOOD)]
    return max(as_good, default=max(view.workload.ladder))


def limits_of(view: CampaignView, book: Book, spelling: Spelling) -> tuple[Limit, ...]:
    """What binds the incumbent, the strongest first; empty before it was measured."""
    flags = view.incumbent.flags
    return find_limits(
        Situation(
            rungs=view.rungs_of(view.incumbent),
            facts=facts_of(view),
            cap=_cap(view, book, spelling),
            eager=any(spelling.find(flag, flags) for flag in book.eager),
            distorted=_distorted(view),
            latency=view.goal.name == "min-latency",
        )
    )


def _cap(view: CampaignView, book: Book, spelling: Spelling) -> float | None:
    current = functions_of(view, view.incumbent, spelling)["flag"]
    found: list[float] = []
    for flag in book.caps:
        try:
            value = current(flag)
        except UnknownFactError:
            continue
        if isinstance(value, int | float) and value > 0:
            found.append(value)
    return min(found, default=None)


def _distorted(view: CampaignView) -> str:
    rungs = (rung for launch in view.launches_of(view.incumbent) for rung in launch.rungs)
    return next((r.client.why or r.invalid for r in rungs if not r.client.valid), "")


def _holds_all(rung: Rung, constraints: tuple[Constraint, ...]) -> bool:
    return all(_holds(rung, constraint) for constraint in constraints)


def _holds(rung: Rung, constraint: Constraint) -> bool:
    """Whether the rung keeps the bound; a metric that was not measured does not break it."""
    match constraint.metric:
        case "output_tok_s":
            return rung.output_tok_s is None or rung.output_tok_s >= constraint.bound
        case "goodput_rps":
            return rung.goodput_rps is None or rung.goodput_rps >= constraint.bound
        case "error_rate":
            return rung.failed <= constraint.bound * (rung.failed + rung.completed)
    times = {"ttft": rung.ttft_ms, "tpot": rung.tpot_ms, "itl": rung.itl_ms, "e2e": rung.e2e_ms}
    distribution = times[constraint.metric]
    if distribution is None:
        return True
    return float(getattr(distribution, constraint.percentile or "p99")) <= constraint.bound * 1000
