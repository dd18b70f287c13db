"""What the launches say about the open ideas, and which launch comes next."""

from moeagent.agent.course import Confirming
from moeagent.agent.judge import Case, Judgement, judge, on_the_ladder
from moeagent.agent.loop import Loop
from moeagent.agent.provisional import worth_building_on
from moeagent.agent.spending import no_more_experiments
from moeagent.memory.ledger import Incumbent
from moeagent.memory.records import Launch, LaunchOutcome, Verdict, VerdictKind
from moeagent.tools.stats.allocate import OpenIdea, Step, next_step
from moeagent.tools.stats.assess import Assessment
from moeagent.tools.stats.boundary import Plan
from moeagent.tools.stats.confirm import (
    Confirmation,
    confirm,
    confirmation_plan,
    launches_to_keep,
    overall_gain,
)
from moeagent.tools.stats.noise import NoiseModel, noise_model

NEVER_RAN = (LaunchOutcome.REFUSED,)


def plan_of(loop: Loop) -> Plan:
    """What the campaign may spend: corrections for many ideas and looks hang on it."""
    limits = loop.settings.limits
    return Plan(ideas=limits.experiments, launches=limits.launches)


def noise_of(loop: Loop) -> NoiseModel:
    """The noise floor from every repeated configuration of this campaign, and of earlier ones here."""
    launches = loop.ledger.launches
    if loop.noise is None or loop.noise[0] != len(launches):
        price = loop.settings.host.price_per_hour
        goal, compared = loop.settings.goal, on_the_ladder(launches, loop.settings.workload.ladder)
        found = noise_model(goal, compared, earlier=loop.surveyed.earlier, price_per_hour=price)
        loop.noise = (len(launches), found)
    return loop.noise[1]


def launches_left(loop: Loop) -> int:
    """Launches that ideas may still have; the rest is kept for the confirmation."""
    return loop.settings.limits.launches - len(loop.ledger.launches) - reserve_of(loop)


def reserve_of(loop: Loop) -> int:
    """Launches kept for the confirmation; none where steps are not proven and nothing is claimed."""
    if not loop.settings.limits.prove_each_step:
        return 0
    claim = claim_of(loop)
    claimed = claim.supported_gain if claim else None
    return launches_to_keep(plan_of(loop), claimed, noise_of(loop).goal)


def judgement_of(loop: Loop, hypothesis_id: str, left: int) -> Judgement:
    """What the launches so far say about one idea."""
    hypothesis = loop.ledger.hypothesis(hypothesis_id)
    assert hypothesis is not None
    candidate = loop.course.candidates[hypothesis_id]
    return judge(
        Case(
            hypothesis=hypothesis,
            goal=loop.settings.goal,
            incumbent=ran(loop.ledger.launches_of(loop.incumbent)),
            candidate=tuple(loop.ledger.launches_of(candidate)),
            noise=noise_of(loop),
            plan=plan_of(loop),
            ladder=loop.settings.workload.ladder,
            launches_left=left,
            facts=loop.surveyed.engine,
            output=loop.outputs.verdict_on(candidate),
            task=loop.outputs.tasks.get(candidate.id),
            task_of_baseline=loop.outputs.tasks.get(loop.baseline.id),
            price_per_hour=loop.settings.host.price_per_hour,
        )
    )


def ran(launches: list[Launch]) -> tuple[Launch, ...]:
    """Launches that came to run at all."""
    return tuple(launch for launch in launches if launch.outcome not in NEVER_RAN)


def judge_ideas(loop: Loop, ideas: list[str], left: int) -> None:
    """Judge these ideas; a verdict closes one, an improvement makes it the incumbent for the others."""
    if not loop.settings.limits.prove_each_step:
        left = 0
    for idea in ideas:
        found = judgement_of(loop, idea, left)
        if found.verdict is None:
            loop.course.open[idea] = found.assessment
            continue
        loop.course.open.pop(idea, None)
        loop.decide(found.verdict)
        if found.verdict.kind is VerdictKind.IMPROVED or leads(loop, idea, found):
            rebase(loop, idea)
            return


def leads(loop: Loop, idea: str, found: Judgement) -> bool:
    """Whether an unproven idea is the one to go on from."""
    hypothesis = loop.ledger.hypothesis(idea)
    assert hypothesis is not None
    assert found.verdict is not None
    return worth_building_on(loop, hypothesis, found, noise_of(loop).goal)


def rebase(loop: Loop, winner: str) -> None:
    """The winner is the configuration to beat; ideas that are open go on from it."""
    before, after = loop.incumbent, loop.course.candidates[winner]
    loop.promote(after, winner)
    for idea in loop.course.open:
        change = before.diff(loop.course.candidates[idea])
        moved = after.apply(change)
        loop.remember(moved)
        loop.course.candidates[idea] = moved
        reason = f"{winner} is the configuration to beat now"
        loop.course.open[idea] = Assessment(verdict=None, need="candidate", reason=reason)


def following(loop: Loop) -> Step:
    """The next launch, the next idea, or the end of exploring."""
    course = loop.course
    if not course.ended:
        course.ended = no_more_experiments(loop)
    return next_step(
        [OpenIdea(idea=idea, assessment=a) for idea, a in course.open.items()],
        fresh=course.fresh,
        more_ideas=not course.ended,
        noise_sd=noise_of(loop).goal.cautious().sd,
        launches_left=loop.settings.limits.launches - len(loop.ledger.launches),
        reserve=reserve_of(loop),
    )


def begin_confirmation(loop: Loop) -> bool:
    """Plan fresh launches of baseline and champion; False when there is nothing to confirm or to spend."""
    claim = claim_of(loop)
    if claim is None or claim.supported_gain is None:
        return False
    left = loop.settings.limits.launches - len(loop.ledger.launches)
    planned = confirmation_plan(claim.supported_gain, noise_of(loop).goal, launches_left=left)
    loop.course.confirming = Confirming(list(planned.order), len(loop.ledger.launches))
    if planned.order:
        loop.note("confirmation", planned.reason)
    return bool(planned.order)


def claim_of(loop: Loop) -> Verdict | None:
    """The verdict that made the incumbent; None for the baseline."""
    incumbent: Incumbent | None = loop.ledger.incumbent
    if incumbent is None or incumbent.hypothesis is None:
        return None
    return loop.ledger.verdict(incumbent.hypothesis)


def confirmation_of(loop: Loop) -> Confirmation:
    """What the fresh launches say, with the headline held down by all launches of both."""
    confirming = loop.course.confirming
    fresh = loop.ledger.launches[confirming.first :] if confirming else []
    goal, noise, ladder = loop.settings.goal, noise_of(loop), loop.settings.workload.ladder
    price = loop.settings.host.price_per_hour
    sides = (loop.ledger.launches_of(config) for config in (loop.baseline, loop.incumbent))
    before, after = (on_the_ladder(side, ladder) for side in sides)
    overall = overall_gain(goal, before, after, noise, price_per_hour=price)
    ids = {launch.id for launch in fresh}
    once_more = tuple(launch for launch in before if launch.id in ids)
    anew = tuple(launch for launch in after if launch.id in ids)
    return confirm(goal, once_more, anew, noise, overall=overall, price_per_hour=price)
