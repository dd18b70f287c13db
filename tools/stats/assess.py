"""What the launches so far say about an idea, and which launch would settle it."""

from collections.abc import Sequence
from typing import Literal

from moeagent.memory.records import Effect, Goal, Launch, Record, VerdictKind
from moeagent.tools.stats.boundary import Plan, critical, student, with_unknown_noise
from moeagent.tools.stats.contrast import Contrast, contrast, interval, relative
from moeagent.tools.stats.noise import NoiseFloor, NoiseModel, Series
from moeagent.tools.stats.score import goal_series, rung_series

ENOUGH_LAUNCHES = 3
"""Per side, for a claim, unless the host is known."""
ENOUGH_EARLIER = 5
"""Earlier launches that make a host known."""
DROP_LEVEL = 0.99
"""One-sided confidence with which an idea is called regressed or neutral."""
PURSUE_SD = 2.5
"""An idea this many standard errors above zero is followed up at once instead of parked."""
WIDE = 10.0
"""An upper end from here on says only that it is not known."""

Side = Literal["incumbent", "candidate"]


class Assessment(Record):
    """Either a verdict, or the launch that is needed next."""

    verdict: VerdictKind | None
    """improved, neutral, regressed or inconclusive; None while more launches may settle it."""
    need: Side | None
    """Whose launch comes next when there is no verdict: the two sides are interleaved."""
    pursue: bool = False
    """No verdict yet, but so promising that the next launch should be this idea's: do not park it."""
    goal_effect: Effect | None = None
    """Gain by the goal's score with the interval that a claim must clear; positive is better for every goal
    (for latency and cost: incumbent over candidate, less one)."""
    effects: tuple[Effect, ...] = ()
    """Change of output tok/s at each concurrency with its own 95 % interval: a record, never a claim.
    Filled in when there is a verdict."""
    log_ratio: float | None = None
    launches: tuple[int, int] = (0, 0)
    """Of the incumbent and of the candidate, with a value for the goal."""
    information: float = 0.0
    """In launches: the launch variance over the variance of log_ratio."""
    reason: str


def assess(
    goal: Goal,
    incumbent: Sequence[Launch],
    candidate: Sequence[Launch],
    noise: NoiseModel,
    *,
    plan: Plan,
    launches_left: int,
    price_per_hour: float | None = None,
) -> Assessment:
    """Judge by the goal's score; called after every launch, the error rate of `plan` holds all the same.

    Launches without a value for the goal count as no launch here: what that means is the judge's to say.
    """
    before, _ = goal_series(goal, incumbent, strict=False, price_per_hour=price_per_hour)
    after, _ = goal_series(goal, candidate, strict=True, price_per_hour=price_per_hour)
    found = contrast(before, after)
    if found is None:
        side: Side = "candidate" if before else "incumbent"
        return Assessment(verdict=None, need=side, reason=f"no {side} launch has a value for the goal")
    decided = _decide(goal, found, noise.goal, plan, launches_left)
    need = None if decided[0] else _next_side(before, after)
    effect = _claim_effect(found, noise.goal, plan)
    return Assessment(
        verdict=decided[0],
        need=need,
        pursue=need is not None and _promising(found, noise.goal),
        goal_effect=effect,
        effects=rung_effects(incumbent, candidate, noise) if decided[0] else (),
        log_ratio=found.log_ratio,
        launches=found.launches,
        information=found.information,
        reason=decided[1],
    )


def _decide(
    goal: Goal, found: Contrast, noise: NoiseFloor, plan: Plan, left: int
) -> tuple[VerdictKind | None, str]:
    effect = _claim_effect(found, noise, plan)
    low = _bound(found, noise.cautious(), -1)
    high = _bound(found, noise.cautious(), 1)
    rests = f"; noise also from {noise.earlier} earlier ones" if noise.earlier else ""
    counted = f"{found.launches[0]} and {found.launches[1]} launches{rests}"
    spread = f"{relative(found.log_ratio):+.1%} ({counted})"
    known = min(found.launches) >= first_look(noise)
    if effect and effect.low > 0 and effect.effect >= goal.min_effect and known:
        return (
            VerdictKind.IMPROVED,
            f"{spread}: the interval, corrected for {plan.ideas} ideas, excludes zero",
        )
    if high < 0:
        return VerdictKind.REGRESSED, f"{spread}: a loss at {DROP_LEVEL:.0%} confidence"
    if high < goal.min_effect:
        why = f"a gain of {goal.min_effect:.0%} or more is ruled out at {DROP_LEVEL:.0%} confidence"
        return VerdictKind.NEUTRAL, f"{spread}: {why}"
    if left <= 0:
        return (
            VerdictKind.INCONCLUSIVE,
            f"{spread}: {_between(low, high)}, and no launch is left",
        )
    if found.information >= plan.horizon and known:
        return VerdictKind.INCONCLUSIVE, f"{spread}: its share of the campaign's launches settled nothing"
    return None, f"{spread}: {_between(low, high)}, more launches may settle it"


def _between(low: float, high: float) -> str:
    """The range in words; two launches leave one that is too wide to spell."""
    upper = f"{high:+.1%}" if high < WIDE else f"over +{WIDE:.0%}"
    return f"between {low:+.1%} and {upper}"


def first_look(noise: NoiseFloor) -> int:
    """Launches a side from which a gain may be claimed."""
    return 1 if noise.earlier >= ENOUGH_EARLIER else ENOUGH_LAUNCHES


def _claim_effect(found: Contrast, noise: NoiseFloor, plan: Plan) -> Effect | None:
    """The effect with the interval of a claim; None while the noise is unknown."""
    if noise.df <= 0:
        return None
    z = critical(found.information, min(found.launches), plan, first_look=first_look(noise))
    quantile = with_unknown_noise(z, noise.df)
    return found.effect(noise, quantile, None)


def _bound(found: Contrast, noise: NoiseFloor, sign: int) -> float:
    reach = student(DROP_LEVEL, noise.df) * found.standard_error(noise)
    return relative(found.log_ratio + sign * reach)


def _promising(found: Contrast, noise: NoiseFloor) -> bool:
    return found.log_ratio > PURSUE_SD * found.standard_error(noise.cautious())


def _next_side(incumbent: Series, candidate: Series) -> Side:
    """The side with fewer launches; at a tie the one that did not run last."""
    if len(incumbent) != len(candidate):
        return "incumbent" if len(incumbent) < len(candidate) else "candidate"
    return "incumbent" if candidate[-1][0] > incumbent[-1][0] else "candidate"


def rung_effects(
    incumbent: Sequence[Launch], candidate: Sequence[Launch], noise: NoiseModel
) -> tuple[Effect, ...]:
    """Change of output tok/s at each concurrency that both sides measured, with 95 % Student intervals."""
    found = (
        interval(
            rung_series(incumbent, concurrency),
            rung_series(candidate, concurrency),
            floor.cautious(),
            concurrency=concurrency,
        )
        for concurrency, floor in sorted(noise.rungs.items())
    )
    return tuple(effect for effect in found if effect is not None)
