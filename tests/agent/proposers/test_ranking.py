"""What a launch is worth: risk against gain, guesses against the predictor, steps against their history."""

import pytest

from moeagent.agent.proposers.beliefs import Gain, blend
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.ranking import rank
from moeagent.agent.proposers.steps import knob_steps
from moeagent.memory.records import ConfigChange, PredictedEffect, VerdictKind

CAP = "--max-running-requests"


def idea(view, name: str, gain: float, risk: float) -> Candidate:
    change = ConfigChange(set_flags={f"--{name}": True})
    gains = dict.fromkeys(view.workload.ladder, Gain(gain, 0.02))
    return Candidate(name, "s", "w", "src", name, change, gains, risk=risk)


@pytest.mark.parametrize(("risk", "first"), [(0.45, "bold"), (0.55, "careful")])
def test_what_sooner_dies_than_serves_waits_for_nearly_every_safer_idea(sm120_view, risk, first):
    ideas = [idea(sm120_view, "bold", 0.3, risk), idea(sm120_view, "careful", 0.05, 0.02)]
    ranked = rank(ideas, Playbook().question(sm120_view))
    assert ranked[0].candidate.move == first
    assert ranked[1].score > 0


def test_a_guess_gives_way_to_a_predictor_that_contradicts_it():
    guess = {128: Gain(-0.005, 0.02)}
    said = [PredictedEffect(concurrency=128, effect=-0.18, low=-0.27, high=-0.09)]
    assert blend(guess, said, 0.12)[128].mean > -0.02
    assert -0.12 < blend(guess, said, 0.12, guessed=True)[128].mean < -0.05
    agreed = [PredictedEffect(concurrency=128, effect=0.01, low=0.0, high=0.02)]
    assert blend(guess, agreed, 0.12, guessed=True) == blend(guess, agreed, 0.12)


def paid(view, play, **flags):
    """The view after an idea that lowered the cap, with other flags, paid much."""
    change = ConfigChange(set_flags={CAP: 1024, **{f"--{name}": value for name, value in flags.items()}})
    draft = Draft(
        statement="s", reason="r", change=change, parent=view.incumbent.id, predicted=(),
        refuted_by="x", source="playbook", move="m",
    )  # fmt: skip
    return play(view, draft, 0.3, VerdictKind.IMPROVED)


def test_a_step_goes_on_from_what_the_knob_alone_brought_not_from_what_it_brought_with_others(
    sm120_view, play
):
    def down(view) -> Candidate:
        steps = knob_steps(Playbook().question(view))
        return next(step for step in steps if step.move == f"step:{CAP}:down")

    peak = max(sm120_view.workload.ladder)
    alone, together = down(paid(sm120_view, play)), down(paid(sm120_view, play, speculative_algorithm="X"))
    assert alone.gains[peak].mean > 0.1
    assert not alone.guessed
    assert together.gains[peak].mean < 0.05
    assert together.guessed
