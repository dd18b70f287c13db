"""What a launch is worth: risk against gain, guesses against the predictor, steps against their history."""

import pytest

from moeagent.agent.proposers.beliefs import Gain, blend
from moeagent.agent.proposers.bundle import screen
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.ranking import Ranked, rank
from moeagent.agent.proposers.situation import goal_rung
from moeagent.agent.proposers.steps import knob_steps
from moeagent.memory.records import ConfigChange, Goal, PredictedEffect, VerdictKind

CAP = "--max-running-requests"
CHANGE = ConfigChange(set_flags={"--never-launched": True})


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
        view = view.model_copy(update={"goal": Goal(name="max-goodput")})
        steps = knob_steps(Playbook().question(view))
        return next(step for step in steps if step.move == f"step:{CAP}:down")

    peak = max(sm120_view.workload.ladder)
    alone, together = down(paid(sm120_view, play)), down(paid(sm120_view, play, speculative_algorithm="X"))
    assert alone.gains[peak].mean > 0.1
    assert not alone.guessed
    assert together.gains[peak].mean < 0.05
    assert together.guessed


def test_no_cap_below_the_load_is_tried_for_throughput_and_a_cap_far_above_it_comes_down_to_it(sm120_view):
    (step,) = (s for s in knob_steps(Playbook().question(sm120_view)) if s.move == f"step:{CAP}:down")
    peak = max(sm120_view.workload.ladder)
    assert sm120_view.incumbent.flags[CAP] > peak
    assert step.change.set_flags == {CAP: peak}
    there = sm120_view.model_copy(update={"incumbent": sm120_view.incumbent.apply(step.change)})
    assert not [s for s in knob_steps(Playbook().question(there)) if s.move == f"step:{CAP}:down"]


def ranked_idea(view, name: str, gain: Gain, risk: float = 0.02) -> Ranked:
    change = ConfigChange(set_flags={f"--{name}": True})
    gains = dict.fromkeys(view.workload.ladder, gain)
    candidate = Candidate(name, "s", "w", "src", name, change, gains, risk=risk)
    return Ranked(candidate, gain, gain.expected_improvement())


def test_small_ideas_of_unknown_sign_share_a_launch_and_great_or_risky_ones_do_not(sm120_view):
    ideas = [
        ranked_idea(sm120_view, "a", Gain(0.0, 0.02)),
        ranked_idea(sm120_view, "b", Gain(-0.004, 0.02)),
        ranked_idea(sm120_view, "wild", Gain(0.0, 0.1)),
        ranked_idea(sm120_view, "bad", Gain(-0.03, 0.02)),
        ranked_idea(sm120_view, "fatal", Gain(0.0, 0.02), risk=0.2),
    ]
    question = Playbook().question(sm120_view)
    together = screen(ideas, question)
    assert together is not None
    assert together.candidate.move == "a+b"
    assert together.score > max(idea.score for idea in ideas[:2])
    assert screen(ideas[:1], question) is None
    assert screen([], question) is None


def test_going_up_from_where_a_remedy_lowered_a_number_takes_nothing_back(sm120_view, play):
    def to(view, value: float, kind: VerdictKind):
        change = ConfigChange(set_flags={"--mem-fraction-static": value})
        draft = Draft(
            statement="s", reason="r", change=change, parent=view.incumbent.id, predicted=(),
            refuted_by="x", source="playbook", move=f"to-{value}",
        )  # fmt: skip
        return play(view, draft, 0.1, kind)

    def doubt(view) -> float:
        change = ConfigChange(set_flags={"--mem-fraction-static": 0.92})
        return Playbook().question(view).past.doubt(change, view.incumbent.apply(change).apply(CHANGE), "up")

    raised = to(sm120_view, 0.94, VerdictKind.IMPROVED)
    lowered = to(raised, 0.86, VerdictKind.IMPROVED)
    assert doubt(raised) < 0.2
    assert doubt(lowered) == 1.0


def test_of_rungs_that_are_as_good_the_highest_decides(sm120_view):
    def best(top: float) -> int:
        view = sm120_view
        rungs = tuple(
            r.model_copy(update={"output_tok_s": top}) if r.concurrency == 1024 else r
            for r in view.launches[-1].rungs
        )
        launch = view.launches[-1].model_copy(update={"rungs": rungs})
        return goal_rung(view.model_copy(update={"launches": (launch,)}))

    assert best(1400.0) == 1024
    assert best(1200.0) == 256
