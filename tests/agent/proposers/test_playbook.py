from itertools import groupby

import pytest

from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft, Nothing
from moeagent.agent.proposers.view import CampaignView, KnobLimit, PriorFinding, Rejection, Space
from moeagent.memory.records import ConfigChange, Goal, PredictedEffect, VerdictKind


def ids(view):
    return [r.candidate.move for r in Playbook().ranking(view)]


def test_it_pulls_the_lever_of_the_limit_that_binds(llamacpp_view, h200_view):
    slots = Playbook().propose(llamacpp_view)
    assert isinstance(slots, Draft)
    assert slots.move == "slots.peak"
    assert slots.change.set_flags == {"-np": 32, "-c": 6912}
    assert "batch-cap binds" in slots.reason
    eager = Playbook().propose(h200_view)
    assert isinstance(eager, Draft)
    assert eager.change.remove_flags == ("--enforce-eager",)


def test_a_draft_carries_a_number_at_every_rung_and_what_would_refute_it(llamacpp_view):
    draft = Playbook().propose(llamacpp_view)
    assert [p.concurrency for p in draft.predicted] == [1, 8, 32]
    assert all(p.low <= p.effect <= p.high for p in draft.predicted)
    assert "concurrency 32" in draft.refuted_by
    assert draft.numbered("H1").move == "slots.peak"


def test_risky_moves_get_a_canary_ladder(sm120_view):
    draft = next(r for r in Playbook().ranking(sm120_view) if r.candidate.move == "ep.a2a-flashinfer")
    assert draft.candidate.risk >= 0.4
    proposed = Playbook().propose(sm120_view)
    assert proposed.risk < 0.15 or proposed.canary == (32, 64, 128, 512)


def test_the_campaigns_rows_are_in_the_book_for_sm120(sm120_view):
    wanted = {"mscclpp", "overlap.single-batch", "graphs.piecewise", "ep.a2a-flashinfer", "nccl.channels"}
    assert wanted <= set(ids(sm120_view))
    latency = sm120_view.model_copy(update={"goal": Goal(name="min-latency")})
    assert ids(latency)[0] == "spec.mtp"


def test_moves_that_this_gpu_cannot_run_are_left_out(sm120_view):
    assert not {"fusion.allreduce", "symm-mem", "ep.deepep", "moe.trtllm", "attention.fa3"} & set(
        ids(sm120_view)
    )


def test_a_refuted_idea_does_not_come_back(sm120_view, play):
    view = sm120_view
    seen = []
    for _ in range(6):
        draft = Playbook().propose(view)
        assert isinstance(draft, Draft)
        assert draft.change not in seen
        seen.append(draft.change)
        view = play(view, draft, 0.0, VerdictKind.NEUTRAL)


def test_it_ends_when_nothing_helps(llamacpp_view, play):
    view, turns = llamacpp_view, 0
    while isinstance(draft := Playbook().propose(view), Draft):
        view = play(view, draft, -0.02, VerdictKind.REGRESSED)
        turns += 1
        assert turns < 40
    assert isinstance(draft, Nothing)
    assert "ideas exhausted" in draft.reason


def test_a_direction_that_paid_is_walked_on(llamacpp_view, play):
    draft = next(r for r in Playbook().ranking(llamacpp_view) if r.candidate.move == "slots.eight")
    view = llamacpp_view
    first = (
        Playbook().propose(view).model_copy(update={"change": draft.candidate.change, "move": "slots.eight"})
    )
    view = play(view, first, 0.5, VerdictKind.IMPROVED)
    changes = [r.candidate.change.set_flags.get("-np") for r in Playbook().ranking(view)[:3]]
    assert 16 in changes or 32 in changes


def test_what_paid_before_later_winners_is_offered_to_be_taken_back(sm120_view, play):
    view = sm120_view
    for effect in (0.1, 0.2):
        view = play(view, Playbook().propose(view), effect, VerdictKind.IMPROVED)
    assert "undo:H1" in ids(view)


def test_after_neutral_ideas_of_one_category_another_comes_first(sm120_view, play):
    view, categories = sm120_view, []
    for _ in range(8):
        draft = Playbook().propose(view)
        categories.append(draft.category)
        view = play(view, draft, 0.0, VerdictKind.NEUTRAL)
    longest = max(len(list(group)) for _, group in groupby(categories))
    assert longest <= 3
    assert len(set(categories)) >= 3


def test_a_new_best_configuration_puts_old_refusals_in_question(sm120_view, play):
    draft = Playbook().propose(sm120_view)
    view = play(sm120_view, draft, 0.0, VerdictKind.NEUTRAL)
    assert draft.move not in ids(view)
    other = Playbook().propose(view)
    won = play(view, other, 0.2, VerdictKind.IMPROVED)
    assert set(draft.move.split("+")) & {part for move in ids(won) for part in move.split("+")}


def test_near_winners_are_combined(sm120_view, play):
    view = sm120_view
    wanted = {"mscclpp", "overlap.single-batch"}
    for ranked in Playbook().ranking(view):
        if ranked.candidate.move in wanted:
            base = Playbook().propose(sm120_view)
            update = {
                "change": ranked.candidate.change,
                "move": ranked.candidate.move,
                "category": "communication",
            }
            view = play(view, base.model_copy(update=update), 0.02, VerdictKind.NEUTRAL)
    combined = next(r for r in Playbook().ranking(view) if r.candidate.move == "combine")
    assert set(combined.candidate.change.set_flags) == {"--enable-mscclpp", "--enable-single-batch-overlap"}


def finding(change, kind, match="exact", effect=None):
    return PriorFinding(
        scope="8 x RTX PRO 6000", change=change, kind=kind, reason="r", run="r1", match=match, effect=effect
    )


def test_what_an_earlier_run_refuted_in_this_scope_is_not_paid_for_again(sm120_view):
    change = ConfigChange(set_env={"NCCL_MIN_NCHANNELS": "8"})
    exact = sm120_view.model_copy(update={"priors": (finding(change, VerdictKind.NEUTRAL),)})
    assert "nccl.channels" not in ids(exact)
    relaxed = sm120_view.model_copy(update={"priors": (finding(change, VerdictKind.NEUTRAL, "relaxed"),)})
    assert "nccl.channels" in ids(relaxed)
    assert ids(relaxed).index("nccl.channels") > ids(sm120_view).index("nccl.channels")


def test_what_paid_in_an_earlier_run_comes_first_and_says_so(sm120_view):
    change = ConfigChange(set_flags={"--chunked-prefill-size": 4096})
    view = sm120_view.model_copy(update={"priors": (finding(change, VerdictKind.IMPROVED, effect=0.25),)})
    draft = Playbook().propose(view)
    assert draft.change == change
    assert "run r1" in draft.prior
    assert draft.numbered("H1").from_run == "r1"


def test_a_near_finding_is_believed_more_than_a_far_one(sm120_view):
    change = ConfigChange(set_flags={"--chunked-prefill-size": 4096})

    def promised(trust):
        prior = finding(change, VerdictKind.IMPROVED, "relaxed", effect=0.25)
        view = sm120_view.model_copy(update={"priors": (prior.model_copy(update={"trust": trust}),)})
        return next(r.score for r in Playbook().ranking(view) if r.candidate.from_run == "r1")

    assert promised(0.9) > promised(0.5) > promised(0.2)


def test_a_value_that_is_in_force_already_is_no_idea(sm120_view):
    question = Playbook().question(sm120_view)
    now = sm120_view.incumbent.flags["--max-running-requests"]
    reported = sm120_view.launches[0].model_copy(update={"effective": {"chunked_prefill_size": 8192}})
    view = sm120_view.model_copy(update={"launches": (reported,)})
    assert question.settle(ConfigChange(set_flags={"--max-running-requests": now})) is None
    eight = ConfigChange(set_flags={"--chunked-prefill-size": 8192})
    assert Playbook().question(view).settle(eight) is None
    assert question.settle(eight) is not None


def test_the_users_space_binds(sm120_view):
    first = Playbook().propose(sm120_view)
    knobs = first.change.knobs()
    for space in (Space(pin=knobs), Space(forbid=knobs)):
        view = sm120_view.model_copy(update={"space": space})
        assert all(not set(knobs) & set(r.candidate.change.knobs()) for r in Playbook().ranking(view))
    limited = Space(limit={"--mem-fraction-static": KnobLimit(high=0.92)})
    view = sm120_view.model_copy(update={"space": limited})
    assert all(
        r.candidate.change.set_flags.get("--mem-fraction-static", 0) <= 0.92 for r in Playbook().ranking(view)
    )


def test_a_rejected_idea_is_not_repeated(sm120_view):
    first = Playbook().propose(sm120_view)
    view = sm120_view.model_copy(update={"rejections": (Rejection(change=first.change, reason="no"),)})
    assert Playbook().propose(view).change != first.change


class Oracle:
    """Knows that one change brings a fifth and that another kills the server."""

    def predict_effects(self, parent, child):
        gain = 0.2 if "--enable-mscclpp" in child.flags else 0.0
        return tuple(
            PredictedEffect(concurrency=c, effect=gain, low=gain, high=gain) for c in (1, 10, 256, 1024)
        )

    def risk(self, child):
        return (0.95, "no memory left") if "--enable-dp-attention" in child.flags else (0.0, "")


def test_the_predictor_moves_the_ranking(sm120_view):
    plain = ids(sm120_view)
    informed = [r.candidate.move for r in Playbook(Oracle()).ranking(sm120_view)]
    assert informed.index("mscclpp") < plain.index("mscclpp")
    assert informed.index("dp.attention") > plain.index("dp.attention")


def test_unknown_flags_of_this_version_are_not_proposed(llamacpp_view):
    knobs = tuple(k for k in llamacpp_view.engine.knobs if k.name != "--no-repack")
    engine = llamacpp_view.engine.model_copy(update={"knobs": knobs})
    assert "repack.off" not in ids(llamacpp_view.model_copy(update={"engine": engine}))


def test_a_view_survives_its_own_json(sm120_view, play):
    view = play(sm120_view, Playbook().propose(sm120_view), 0.1, VerdictKind.IMPROVED)
    again = CampaignView.model_validate_json(view.model_dump_json())
    assert again == view
    assert Playbook().propose(again) == Playbook().propose(view)


@pytest.mark.parametrize("goal", ["max-throughput", "min-latency", "max-goodput", "min-cost"])
def test_every_goal_gets_a_proposal(goal, sm120_view, llamacpp_view, h200_view):
    for view in (sm120_view, llamacpp_view, h200_view):
        assert isinstance(Playbook().propose(view.model_copy(update={"goal": Goal(name=goal)})), Draft)


def test_safe_and_likely_ideas_share_a_launch(two_levers, sm120_view, play):
    playbook = Playbook(book=two_levers)
    draft = playbook.propose(sm120_view)
    assert draft.move == "sure+also"
    assert set(draft.change.set_flags) == {"--sure", "--also"}
    assert draft.statement.startswith("Together: ")
    won = play(sm120_view, draft, 0.1, VerdictKind.IMPROVED)
    assert {"undo:H1:sure", "undo:H1:also"} <= {r.candidate.move for r in playbook.ranking(won)}


def test_the_parts_of_a_failed_bundle_are_tried_apart(two_levers, sm120_view, play):
    playbook = Playbook(book=two_levers)
    view = play(sm120_view, playbook.propose(sm120_view), -0.1, VerdictKind.REGRESSED)
    moves = [r.candidate.move for r in playbook.ranking(view)]
    assert {"sure", "also"} <= set(moves)
    assert not any({"sure", "also"} <= set(move.split("+")) for move in moves)


def test_a_limit_whose_levers_bring_nothing_is_believed_in_less(sm120_view, play):
    playbook = Playbook()
    before = playbook.question(sm120_view).relevance(("kv-capacity",))
    view = play(sm120_view, playbook.propose(sm120_view), 0.0, VerdictKind.NEUTRAL)
    view = play(
        view,
        playbook.propose(sm120_view).model_copy(update={"move": "fraction.up"}),
        0.0,
        VerdictKind.NEUTRAL,
    )
    for _ in range(3):
        view = play(
            view, playbook.propose(view).model_copy(update={"move": "kv.fp8"}), 0.0, VerdictKind.NEUTRAL
        )
    assert playbook.question(view).relevance(("kv-capacity",)) < before
