"""A look at what is only believed: what is taken back, when, and what it is worth."""

import pytest

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.book import Book, parse_book
from moeagent.agent.proposers.history import UNTESTED
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.surrogate import Surrogate
from moeagent.agent.proposers.untested import untested_advice
from moeagent.memory.records import ConfigChange, PredictedEffect, VerdictKind

SAID = 0.05


def move(name: str, sets: str, category: str = "host", more: str = "") -> str:
    return (
        f'[[move]]\nid = "{name}"\nstatement = "Do {name}"\nwhy = "w"\nsource = "s"\n'
        f'category = "{category}"\n'
        f"{sets}\neffect = [{{ at = 1, low = 0.04, high = 0.06 }}]\n{more}\n"
    )


@pytest.fixture
def advice() -> Book:
    """Three pieces of small advice, one that decides what fits, and one against what is usual."""
    return parse_book(
        'engine = "sglang"\n'
        + move("one", 'set = { "--one" = true }')
        + move("two", 'set = { "--two" = 4 }')
        + move("three", 'env = { THREE = "1" }')
        + move("room", 'set = { "--room" = 1 }', category="memory")
        + move("against", 'set = { "--against" = true }', more="contrary = true"),
        "advice",
    )


def adopted(view, play, change: ConfigChange, moves: str, effect: float = 0.2):
    predicted = tuple(
        PredictedEffect(concurrency=c, effect=SAID, low=SAID - 0.02, high=SAID + 0.02)
        for c in view.workload.ladder
    )
    draft = Draft(
        statement="s", reason="r", change=change, parent=view.incumbent.id, predicted=predicted,
        refuted_by="x", source="playbook", move=moves,
    )  # fmt: skip
    return play(view, draft, effect, VerdictKind.IMPROVED)


TOGETHER = ConfigChange(set_flags={"--one": True, "--two": 4, "--room": 1}, set_env={"THREE": "1"})


def offered(view, book):
    return list(untested_advice(Playbook(book=book).question(view)))


def made(view, play, check, effect: float, kind: VerdictKind, predicted: tuple[PredictedEffect, ...] = ()):
    """The view after the check was launched and judged."""
    draft = Draft(
        statement="s", reason="r", change=check.change, parent=view.incumbent.id, predicted=predicted,
        refuted_by="x", source="playbook", move=UNTESTED,
    )  # fmt: skip
    return play(view, draft, effect, kind)


def test_small_advice_that_was_adopted_in_company_is_taken_back_with_the_contrary_beside(
    sm120_view, play, advice
):
    view = adopted(sm120_view, play, TOGETHER, "one+two+three+room")
    (check,) = offered(view, advice)
    assert check.change == ConfigChange(
        set_flags={"--against": True}, remove_flags=("--one", "--two"), remove_env=("THREE",)
    )
    assert "take back --one, --two, THREE; do against" in check.statement


def test_what_was_tested_apart_stays(sm120_view, play, advice):
    view = adopted(sm120_view, play, TOGETHER, "one+two+three+room")
    apart = Draft(
        statement="s", reason="r", change=ConfigChange(remove_flags=("--two",)), parent=view.incumbent.id,
        predicted=(), refuted_by="x", source="playbook", move="undo:H1:two",
    )  # fmt: skip
    view = play(view, apart, -0.05, VerdictKind.REGRESSED)
    tried = view.verdicts[-1].model_copy(update={"effects": (view.verdicts[-1].goal_effect,)})
    view = view.model_copy(update={"verdicts": (*view.verdicts[:-1], tried)})
    (check,) = offered(view, advice)
    assert check.change.remove_flags == ("--one",)


def test_it_is_asked_once(sm120_view, play, advice):
    view = adopted(sm120_view, play, TOGETHER, "one+two+three+room")
    (check,) = offered(view, advice)
    assert not offered(made(view, play, check, -0.1, VerdictKind.REGRESSED), advice)


def test_nothing_is_asked_while_nothing_was_adopted_in_company(sm120_view, advice):
    assert not offered(sm120_view, advice)


def test_beliefs_are_taken_to_be_wrong_now_and_then_and_worth_no_more_for_promising_more(
    sm120_view, play, advice
):
    def corrected(effect: float):
        view = adopted(sm120_view, play, TOGETHER, "one+two+three+room", effect)
        (check,) = offered(view, advice)
        return Surrogate(Playbook(book=advice).question(view)).corrected(check)

    def worth(check) -> float:
        return check.doubt * check.gains[peak].expected_improvement()

    peak = max(sm120_view.workload.ladder)
    little, much = corrected(0.4), corrected(1.2)
    assert much.gains[peak].mean < little.gains[peak].mean < 0
    assert little.gains[peak].chance() == pytest.approx(0.25, abs=0.01)
    assert worth(much) == pytest.approx(worth(little), rel=0.05)


def test_what_it_measured_tells_of_the_contrary_by_its_own_word(sm120_view, play, advice):
    """Not by the loss that was predicted for all that is taken back."""
    view = adopted(sm120_view, play, TOGETHER, "one+two+three+room", 0.02)
    (check,) = offered(view, advice)
    predicted = tuple(Gain(-0.2, 0.1).at(c) for c in view.workload.ladder)
    view = made(view, play, check, -0.05, VerdictKind.REGRESSED, predicted)
    question = Playbook(book=advice).question(view)
    only = next(c for c in Playbook(book=advice).ranking(view) if c.candidate.move == "against")
    assert question.past.of_move(UNTESTED)
    assert only.gain.mean > -0.05


def test_what_it_took_back_may_be_wanted_again(sm120_view, play, advice):
    view = adopted(sm120_view, play, TOGETHER, "one+two+three+room")
    (check,) = offered(view, advice)
    view = made(view, play, check, 0.1, VerdictKind.IMPROVED)
    again = ConfigChange(set_flags={"--one": True})
    past = Playbook(book=advice).question(view).past
    assert past.doubt(again, view.incumbent.apply(again), "one") == 1.0
