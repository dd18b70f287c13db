"""Building on what measured best before it is proven, where a campaign is too short to prove every step.

The decision weighs what was expected against what was measured: a small surplus after one launch does not
outweigh a change that should cost something, nor does a small deficit sink one that should pay.
"""

import math

from moeagent.agent.judge import Judgement
from moeagent.agent.loop import Loop
from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.situation import goal_rung
from moeagent.memory.records import Hypothesis, VerdictKind
from moeagent.tools.stats.assess import Assessment
from moeagent.tools.stats.noise import NoiseFloor

OPEN_ENDED = (VerdictKind.INCONCLUSIVE, VerdictKind.NEUTRAL)
"""Verdicts of a candidate that works, and whose gain is merely not proven."""
RISKY = 0.2
"""Where a crash is as likely as this, the effect must be worth having: it stands in the way of others."""
LAUNCH_SD = 0.02
"""Launch noise that is assumed while no configuration was launched twice: one to two per cent is usual."""
NO_IDEA = Gain(0.0, 0.1)
"""Belief in a hypothesis without a prediction, and in what a remedy made of one."""


def worth_building_on(loop: Loop, hypothesis: Hypothesis, found: Judgement, noise: NoiseFloor) -> bool:
    """Whether an unproven candidate is the configuration to go on from."""
    assessment = found.assessment
    open_ended = found.verdict is not None and found.verdict.kind in OPEN_ENDED
    if loop.settings.limits.prove_each_step or not open_ended or assessment.log_ratio is None:
        return False
    risk, _ = loop.predictor.risk(loop.course.candidates[hypothesis.id])
    # What was feared before the launch is answered by it; what the predictor fears after it still counts.
    wanted = loop.settings.goal.min_effect if risk >= RISKY else 0.0
    return belief_after(expected(loop, hypothesis), assessment, noise).mean > wanted


def expected(loop: Loop, hypothesis: Hypothesis) -> Gain:
    """What the hypothesis said about the goal's rung; a language model's word is no evidence."""
    if hypothesis.source == "model" or loop.ledger.pivots_for(hypothesis.id):
        return NO_IDEA
    rung = goal_rung(loop.view())
    said = next((p for p in hypothesis.predicted if p.concurrency == rung), None)
    return NO_IDEA if said is None else Gain.between(said.low, said.high)


def belief_after(prior: Gain, found: Assessment, noise: NoiseFloor) -> Gain:
    """The prior joined with the measurement, each weighted by its precision."""
    assert found.log_ratio is not None
    spread = math.sqrt(sum(1 / launches for launches in found.launches))
    sd = noise.cautious().sd if noise.df else LAUNCH_SD
    return prior.combine(Gain(math.expm1(found.log_ratio), sd * spread))
