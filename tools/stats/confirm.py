"""The champion against the baseline once more, on fresh launches.

A gain that was selected for being large is overstated by the launches that selected it, so fresh ones decide
whether it is confirmed. Those that confirm are in turn the lucky ones, the more so the fewer launches they
had (six a side read a true 5 % as 7 % in tests/bench/placebo), so the headline is the smaller of their
estimate and that of all launches (4.9 % there).
"""

import math
from collections.abc import Sequence
from typing import Literal

from moeagent.memory.records import Effect, Goal, Launch, Record
from moeagent.tools.stats.assess import ENOUGH_LAUNCHES, Side
from moeagent.tools.stats.boundary import Plan, student
from moeagent.tools.stats.contrast import interval
from moeagent.tools.stats.noise import NoiseFloor, NoiseModel
from moeagent.tools.stats.score import goal_series

LEVEL = 0.95
LARGEST_SHARE = 4
"""The confirmation gets at most one launch in so many of the campaign's: the rest is for finding gains."""


class ConfirmationPlan(Record):
    """Fresh launches of baseline ("incumbent") and champion ("candidate"), in order."""

    order: tuple[Side, ...]
    """Mirrored pairs, so that a steady drift cancels."""
    reason: str


class Confirmation(Record):
    """What the fresh launches say about the champion's gain over the baseline."""

    status: Literal["confirmed", "unresolved", "refuted", "not-run"]
    effect: Effect | None
    """From the fresh launches alone, with its 95 % interval."""
    overall: Effect | None = None
    """From all launches of baseline and champion."""
    reason: str

    @property
    def headline(self) -> Effect | None:
        """The gain that a headline, table or export may show; None when none is supported."""
        if self.status != "confirmed" or self.effect is None:
            return None
        return min((self.effect, self.overall or self.effect), key=lambda e: e.effect)


def overall_gain(
    goal: Goal,
    baseline: Sequence[Launch],
    champion: Sequence[Launch],
    noise: NoiseModel,
    *,
    price_per_hour: float | None = None,
) -> Effect | None:
    """The gain by the goal's score with its 95 % interval; None when a side has no value."""
    before, _ = goal_series(goal, baseline, strict=False, price_per_hour=price_per_hour)
    after, _ = goal_series(goal, champion, strict=True, price_per_hour=price_per_hour)
    return interval(before, after, noise.goal.cautious(), level=LEVEL)


def fresh_launches(claimed: Effect, noise: NoiseFloor) -> int:
    """Launches a side, at least three, that tell half of the claimed gain, or its lower end, from zero.

    Half, because what was selected for being large is overstated: a true gain of three quarters of the claim
    is then confirmed in five of six campaigns.
    """
    known = noise.cautious()
    target = math.log1p(max(claimed.low, claimed.effect / 2))
    if target <= 0:
        return ENOUGH_LAUNCHES
    reach = student((1 + LEVEL) / 2, known.df) * known.sd
    return max(ENOUGH_LAUNCHES, math.ceil(2 * (reach / target) ** 2))


def launches_to_keep(plan: Plan, claimed: Effect | None, noise: NoiseFloor) -> int:
    """Launches that exploring may not spend: the plan's reserve, and more once there is a gain to confirm.

    claimed: the champion's gain as its verdict supports it; None while there is none. A campaign too small to
    afford three a side keeps no more for it.
    """
    most = plan.launches // LARGEST_SHARE
    if claimed is None or most < 2 * ENOUGH_LAUNCHES:
        return plan.reserve
    return max(plan.reserve, min(2 * fresh_launches(claimed, noise), most))


def confirmation_plan(claimed: Effect, noise: NoiseFloor, *, launches_left: int) -> ConfirmationPlan:
    """As many launches a side, at least three, as tell the lower end of the claim from zero.

    claimed: the champion's gain over the baseline as the verdicts support it.
    """
    affordable = max(0, launches_left) // 2
    wanted = fresh_launches(claimed, noise)
    each = min(wanted, affordable)
    pair: tuple[Side, Side] = ("incumbent", "candidate")
    order = tuple(side for i in range(each) for side in (pair if i % 2 == 0 else pair[::-1]))
    reason = f"{each} fresh launches a side of the {wanted} that resolve a gain of {claimed.low:+.1%} or more"
    return ConfirmationPlan(order=order, reason=reason)


def confirm(
    goal: Goal,
    baseline: Sequence[Launch],
    champion: Sequence[Launch],
    noise: NoiseModel,
    *,
    overall: Effect | None = None,
    price_per_hour: float | None = None,
) -> Confirmation:
    """Judge by fresh launches. Refuted means that even the smallest gain worth having is ruled out.

    overall: `overall_gain` of all launches of both, the fresh ones included.
    """
    effect = overall_gain(goal, baseline, champion, noise, price_per_hour=price_per_hour)
    if effect is None and champion and not _has_value(goal, champion, price_per_hour):
        return Confirmation(status="refuted", effect=None, reason="the champion failed when launched again")
    if effect is None:
        return Confirmation(status="not-run", effect=None, reason="no launch was left to confirm the gain")
    spread = f"{effect.effect:+.1%} ({effect.low:+.1%} to {effect.high:+.1%}) on fresh launches"
    if effect.high < goal.min_effect:
        return Confirmation(status="refuted", effect=effect, reason=f"{spread}: no gain worth having")
    if min(effect.launches) < ENOUGH_LAUNCHES:
        few = " and ".join(str(n) for n in effect.launches)
        reason = f"{spread}, {few} of them: {ENOUGH_LAUNCHES} a side would confirm it"
        return Confirmation(status="unresolved", effect=effect, reason=reason)
    if effect.low <= 0:
        return Confirmation(status="unresolved", effect=effect, reason=f"{spread}: too few to resolve it")
    return Confirmation(status="confirmed", effect=effect, overall=overall, reason=spread)


def _has_value(goal: Goal, launches: Sequence[Launch], price_per_hour: float | None) -> bool:
    return bool(goal_series(goal, launches, strict=True, price_per_hour=price_per_hour)[0])
