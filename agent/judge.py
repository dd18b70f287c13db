"""The verdict on one hypothesis: did it fail, is it in force, is it right, and then what the numbers say."""

from collections.abc import Sequence

from moeagent.memory.records import (
    EngineFacts,
    Goal,
    Hypothesis,
    Launch,
    LaunchOutcome,
    Record,
    Verdict,
    VerdictKind,
)
from moeagent.tools.engines.effective import effective_identity
from moeagent.tools.output_check.sample import OutputVerdict
from moeagent.tools.output_check.task import TaskResult
from moeagent.tools.stats.assess import ENOUGH_LAUNCHES, Assessment, Side, assess, rung_effects
from moeagent.tools.stats.boundary import Plan
from moeagent.tools.stats.calibration import prediction_scores
from moeagent.tools.stats.metrics import broken
from moeagent.tools.stats.noise import NoiseModel
from moeagent.tools.stats.score import score, unmeasured

FAILED = (LaunchOutcome.DIED_STARTING, LaunchOutcome.HUNG_STARTING, LaunchOutcome.REFUSED)
NO_POWER = "the GPUs' power is not known, and no host.price_per_hour is set"
ATTEMPTS_TO_MEASURE = 2
"""Launches without one usable rung after which the measurement is called invalid."""


class Case(Record):
    """Everything that a verdict rests on."""

    hypothesis: Hypothesis
    goal: Goal
    incumbent: tuple[Launch, ...]
    """All launches of the configuration to beat, oldest first."""
    candidate: tuple[Launch, ...]
    """All launches of the hypothesis's final configuration, oldest first."""
    noise: NoiseModel
    plan: Plan
    ladder: tuple[int, ...] = ()
    """Concurrencies at which both sides are compared; none means all. A canary rung is asked of one side:
    it says where a server dies, and the best value of all has nothing to be compared with there."""
    launches_left: int
    """Besides the reserve for the confirmation."""
    facts: EngineFacts | None = None
    output: OutputVerdict | None = None
    """None while the output was not checked."""
    task: TaskResult | None = None
    """What the user's own check said of the candidate; None while it was not asked."""
    task_of_baseline: TaskResult | None = None
    """None where there is no such check: the baseline is asked first."""
    price_per_hour: float | None = None


class Judgement(Record):
    """A verdict, or the side that is launched next."""

    verdict: Verdict | None
    need: Side | None = None
    assessment: Assessment
    """For `next_step`, which chooses among the ideas without a verdict."""


def judge(case: Case) -> Judgement:
    """The verdict as soon as one is possible; call it after every launch of either side."""
    if not case.candidate:
        return _open("candidate", "not launched yet")
    settled = _failed(case)
    if settled is not None:
        return settled
    case = _on_the_ladder(case)
    settled = _unusable(case) or _no_op(case) or _wrong(case) or _broke(case)
    found = settled or _by_numbers(case)
    return _unchecked(case, found) or found


def _on_the_ladder(case: Case) -> Case:
    incumbent, candidate = (on_the_ladder(side, case.ladder) for side in (case.incumbent, case.candidate))
    return case.model_copy(update={"incumbent": incumbent, "candidate": candidate})


def on_the_ladder(launches: Sequence[Launch], ladder: Sequence[int]) -> tuple[Launch, ...]:
    """The launches with the rungs of the ladder alone; with all of them when there is no ladder."""
    if not ladder:
        return tuple(launches)
    return tuple(
        launch.model_copy(update={"rungs": tuple(r for r in launch.rungs if r.concurrency in ladder)})
        for launch in launches
    )


def _by_numbers(case: Case) -> Judgement:
    found = assess(
        case.goal, case.incumbent, case.candidate, case.noise,
        plan=case.plan, launches_left=case.launches_left, price_per_hour=case.price_per_hour,
    )  # fmt: skip
    if found.verdict is None and found.log_ratio is None:
        return _without_ratio(case, found)
    if found.verdict is None:
        return Judgement(verdict=None, need=found.need, assessment=found)
    return _closed(case, found.verdict, found.reason, found)


def _failed(case: Case) -> Judgement | None:
    """The last launch did not come up, or died under load; remedies are exhausted when the judge is asked."""
    last = case.candidate[-1]
    cause = f": {last.diagnosis.failure_class}" if last.diagnosis else ""
    if last.outcome in FAILED:
        worked = len(case.candidate) > 1
        kind = VerdictKind.REGRESSED if worked else VerdictKind.BLOCKED
        when = f" after {len(case.candidate) - 1} good launches" if worked else ""
        return _closed(case, kind, f"{last.outcome.value}{when}{cause}")
    if last.outcome is not LaunchOutcome.DIED_SERVING:
        return None
    good = [r.concurrency for r in last.rungs if r.usable]
    if not good:
        return _closed(case, VerdictKind.BLOCKED, f"died under its first load{cause}")
    boundary = f"serves {max(good)} concurrent requests and dies above"
    return _closed(case, VerdictKind.REGRESSED, f"{boundary}{cause}", broken_constraints=(boundary,))


def _unusable(case: Case) -> Judgement | None:
    """No rung of any launch may be used: client distorted, figures implausible, GPU throttled."""
    rungs = [rung for launch in case.candidate for rung in launch.rungs]
    if any(not unmeasured(case.goal, rung, case.price_per_hour) for rung in rungs):
        return None
    why = sorted({rung.invalid or NO_POWER for rung in rungs})
    reason = "; ".join(why) or "nothing was measured"
    if len(case.candidate) < ATTEMPTS_TO_MEASURE and case.launches_left > 0:
        return _open("candidate", f"measured once more: {reason}")
    return _closed(case, VerdictKind.INVALID, reason)


def _no_op(case: Case) -> Judgement | None:
    """What is in force is what was in force before: any difference that was measured is noise."""
    if not case.incumbent:
        return None
    unsteady = _unsteady(case.incumbent) | _unsteady(case.candidate)
    before = _in_force(case.incumbent[-1], case.facts, unsteady)
    after = _in_force(case.candidate[-1], case.facts, unsteady)
    if before != after:
        return None
    knobs = ", ".join(case.hypothesis.change.knobs()) or "nothing"
    reason = f"the engine runs with the same settings as before: {knobs} changed nothing that is in force"
    return _closed(case, VerdictKind.NO_OP, reason)


def _unsteady(launches: tuple[Launch, ...]) -> set[str]:
    """Settings that differ between launches of one configuration, such as sizes derived from free memory."""
    return {
        name
        for launch in launches
        for name in launch.effective
        if launch.effective[name] != launches[0].effective.get(name)
    }


def _in_force(launch: Launch, facts: EngineFacts | None, unsteady: set[str]) -> str:
    steady = {name: value for name, value in launch.effective.items() if name not in unsteady}
    return effective_identity(launch.config, steady, facts)


def _wrong(case: Case) -> Judgement | None:
    """Its answers are not the baseline's, or the user's own check says no."""
    if case.output is not None and not case.output.ok:
        return _closed(case, VerdictKind.REGRESSED, f"the output is wrong: {case.output.reason}")
    if case.task is not None and not case.task.ok:
        return _closed(case, VerdictKind.REGRESSED, case.task.reason(case.task_of_baseline))
    return None


def _unchecked(case: Case, found: Judgement) -> Judgement | None:
    """No gain is claimed for a configuration that the user's own check has not seen."""
    claimed = found.verdict is not None and found.verdict.kind is VerdictKind.IMPROVED
    if not claimed or case.task_of_baseline is None or case.task is not None:
        return None
    if case.launches_left > 0:
        return _open("candidate", "measured better, and has still to pass the task check")
    reason = "measured better, and no launch is left for the task check"
    return _closed(case, VerdictKind.INCONCLUSIVE, reason)


def _broke(case: Case) -> Judgement | None:
    """The incumbent has a rung that holds every constraint, and the candidate's last launch has none."""
    if any(unmeasured(case.goal, rung, case.price_per_hour) for rung in case.candidate[-1].rungs):
        return None
    held = any(score(case.goal, x.rungs, price_per_hour=case.price_per_hour) for x in case.incumbent)
    if not held or score(case.goal, case.candidate[-1].rungs, price_per_hour=case.price_per_hour):
        return None
    reasons = [text for r in case.candidate[-1].rungs for text in broken(r, case.goal.constraints)]
    text = "no concurrency gives the goal a value: " + ("; ".join(reasons) or "its metric was not measured")
    return _closed(case, VerdictKind.REGRESSED, text, broken_constraints=tuple(reasons))


def _without_ratio(case: Case, found: Assessment) -> Judgement:
    """The incumbent holds the constraints nowhere: a candidate that does is better, by no number."""
    if len(case.incumbent) >= ENOUGH_LAUNCHES and len(case.candidate) >= ENOUGH_LAUNCHES:
        values = [score(case.goal, x.rungs, price_per_hour=case.price_per_hour) for x in case.candidate]
        launches = (*case.incumbent, *case.candidate)
        badly = any(unmeasured(case.goal, r, case.price_per_hour) for x in launches for r in x.rungs)
        if badly:
            return _closed(case, VerdictKind.INVALID, "too few launches were measured well")
        if all(values):
            return _closed(case, VerdictKind.IMPROVED, "the first configuration that holds every constraint")
        return _closed(case, VerdictKind.NEUTRAL, "holds the constraints no better than the incumbent")
    if case.launches_left <= 0:
        return _closed(case, VerdictKind.INCONCLUSIVE, f"{found.reason}, and no launch is left")
    need: Side = "incumbent" if len(case.incumbent) < len(case.candidate) else "candidate"
    return _open(need, found.reason)


def _open(need: Side, reason: str) -> Judgement:
    return Judgement(
        verdict=None, need=need, assessment=Assessment(verdict=None, need=need, pursue=True, reason=reason)
    )


def _closed(
    case: Case,
    kind: VerdictKind,
    reason: str,
    found: Assessment | None = None,
    *,
    broken_constraints: tuple[str, ...] = (),
) -> Judgement:
    if found is None:
        found = Assessment(
            verdict=kind,
            need=None,
            effects=rung_effects(case.incumbent, case.candidate, case.noise),
            reason=reason,
        )
    verdict = Verdict(
        hypothesis=case.hypothesis.id,
        kind=kind,
        goal_effect=found.goal_effect,
        effects=found.effects,
        predictions=prediction_scores(case.hypothesis.predicted, found.effects),
        reason=reason,
        broken_constraints=broken_constraints,
    )
    return Judgement(verdict=verdict, assessment=found)
