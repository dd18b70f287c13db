"""What launches say about levers: surprises are shared, launches tell parts apart, deaths name suspects."""

import pytest

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.surrogate import Surrogate
from moeagent.agent.proposers.suspicion import Suspicion
from moeagent.memory.records import (
    ConfigChange,
    Diagnosis,
    LaunchOutcome,
    PredictedEffect,
    VerdictKind,
)

PROMISED = 0.2


def flags(*names: str) -> ConfigChange:
    return ConfigChange(set_flags=dict.fromkeys(names, True))


def draft_of(view, *names: str) -> Draft:
    predicted = tuple(
        PredictedEffect(concurrency=c, effect=PROMISED, low=0.0, high=2 * PROMISED)
        for c in view.workload.ladder
    )
    return Draft(
        statement="s", reason="r", change=flags(*names), parent=view.incumbent.id, predicted=predicted,
        refuted_by="x", source="playbook", move="+".join(name.strip("-") for name in names),
    )  # fmt: skip


def gain_of(view, *names: str, together: bool = False) -> Gain:
    gains = dict.fromkeys(view.workload.ladder, Gain(PROMISED / 2, 0.1))
    candidate = Candidate("m", "s", "w", "src", "c", flags(*names), gains, together=together)
    surrogate = Surrogate(Playbook().question(view))
    return surrogate.corrected(candidate).gains[max(view.workload.ladder)]


def believed(view, *names: str, together: bool = False) -> float:
    return gain_of(view, *names, together=together).mean


def test_a_lever_that_nobody_pulled_keeps_its_prior(sm120_view, play):
    view = play(sm120_view, draft_of(sm120_view, "--one"), 0.0, VerdictKind.NEUTRAL)
    assert believed(view, "--other") == PROMISED / 2


def test_the_parts_of_a_bundle_that_brought_nothing_share_the_surprise(sm120_view, play):
    view = play(sm120_view, draft_of(sm120_view, "--one", "--two"), 0.0, VerdictKind.NEUTRAL)
    assert -0.02 < believed(view, "--one") < PROMISED / 4


def test_a_launch_without_one_part_tells_them_apart(sm120_view, play):
    view = play(sm120_view, draft_of(sm120_view, "--one", "--two"), 0.0, VerdictKind.NEUTRAL)
    view = play(view, draft_of(view, "--one"), 0.15, VerdictKind.NEUTRAL)
    assert believed(view, "--one") > 0.1
    assert believed(view, "--two") < -0.05


def test_what_is_said_to_pay_only_together_is_not_judged_by_its_parts(sm120_view, play):
    view = play(sm120_view, draft_of(sm120_view, "--one"), -0.2, VerdictKind.REGRESSED)
    assert believed(view, "--one", "--two") < PROMISED / 2
    assert believed(view, "--one", "--two", together=True) == PROMISED / 2


def test_what_a_lever_did_in_another_layout_is_less_certain_in_this_one(sm120_view, play):
    view = play(sm120_view, draft_of(sm120_view, "--one"), -0.2, VerdictKind.REGRESSED)
    before = gain_of(view, "--one")
    ep = draft_of(view, "--ep").model_copy(update={"change": ConfigChange(set_flags={"--ep-size": 8})})
    after = gain_of(play(view, ep, 0.1, VerdictKind.IMPROVED), "--one")
    assert before.sd < 0.05 < after.sd
    assert before.expected_improvement() < after.expected_improvement()


def test_a_great_surprise_puts_in_question_what_was_thought_sure(sm120_view, play):
    sure = tuple(
        PredictedEffect(concurrency=c, effect=PROMISED, low=PROMISED - 0.01, high=PROMISED + 0.01)
        for c in sm120_view.workload.ladder
    )
    draft = draft_of(sm120_view, "--one", "--two").model_copy(update={"predicted": sure})
    foreseen = gain_of(play(sm120_view, draft, PROMISED, VerdictKind.NEUTRAL), "--two")
    surprising = gain_of(play(sm120_view, draft, -0.5, VerdictKind.REGRESSED), "--two")
    assert surprising.sd > 0.1 > foreseen.sd
    assert surprising.mean < 0


def test_a_loss_by_raising_a_number_speaks_for_lowering_it(sm120_view, play):
    def cap(view, value: int) -> Draft:
        change = ConfigChange(set_flags={"--max-running-requests": value})
        return draft_of(view).model_copy(update={"change": change, "move": "m"})

    def lowered(view) -> float:
        change = ConfigChange(set_flags={"--max-running-requests": 1024})
        gains = dict.fromkeys(view.workload.ladder, Gain(0.0, 0.05))
        found = Surrogate(Playbook().question(view)).corrected(
            Candidate("n", "s", "w", "x", "c", change, gains)
        )
        return found.gains[max(view.workload.ladder)].mean

    assert lowered(sm120_view) == 0
    raised = play(sm120_view, cap(sm120_view, 8192), -0.2, VerdictKind.REGRESSED)
    paid = play(sm120_view, cap(sm120_view, 8192), 0.3, VerdictKind.NEUTRAL)
    assert lowered(raised) > 0.005
    assert lowered(paid) < lowered(raised)


def test_equal_views_give_equal_figures(sm120_view, play):
    view = play(sm120_view, draft_of(sm120_view, "--one", "--two"), 0.05, VerdictKind.NEUTRAL)
    assert believed(view, "--one") == believed(view, "--one")


@pytest.fixture
def dies(play):
    def _dies(view, failure: str, *names: str):
        view = play(view, draft_of(view, *names), 0.0, VerdictKind.BLOCKED)
        died = Diagnosis(
            failure_class=failure, confidence=1, root_line="r", line_no=1, stage="warmup", explanation="e"
        )
        last = view.launches[-1].model_copy(
            update={"outcome": LaunchOutcome.DIED_STARTING, "rungs": (), "diagnosis": died}
        )
        return view.model_copy(update={"launches": (*view.launches[:-1], last)})

    return _dies


def risk(view, name: str) -> float:
    return Suspicion(Playbook().question(view)).risk(view.incumbent, flags(name))


def test_every_part_of_a_dead_bundle_is_suspected(sm120_view, dies):
    view = dies(sm120_view, "kernel.illegal_access", "--one", "--two", "--three")
    assert 0.3 < risk(view, "--one") < 0.5
    assert risk(view, "--other") == 0.0


def test_a_lever_that_the_book_calls_risky_is_suspected_first(sm120_view, dies):
    view = dies(sm120_view, "kernel.illegal_access", "--chunked-prefill-size", "--stream-interval")
    assert risk(view, "--chunked-prefill-size") > 0.7
    assert risk(view, "--stream-interval") < 0.2


def test_a_survivor_clears_what_it_had_and_the_rest_is_suspected_more(sm120_view, dies, play):
    view = dies(sm120_view, "kernel.illegal_access", "--one", "--two")
    view = play(view, draft_of(view, "--one"), 0.0, VerdictKind.NEUTRAL)
    assert risk(view, "--one") == 0.0
    assert risk(view, "--two") > 0.9


def test_running_out_of_memory_accuses_no_lever(sm120_view, dies):
    assert risk(dies(sm120_view, "oom.cuda.serve", "--one"), "--one") == 0.0
