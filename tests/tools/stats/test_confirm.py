import pytest

from moeagent.memory.records import Effect, Goal, PredictedEffect
from moeagent.tools.stats.boundary import Plan
from moeagent.tools.stats.calibration import calibration, prediction_scores
from moeagent.tools.stats.confirm import confirm, confirmation_plan, fresh_launches, launches_to_keep
from moeagent.tools.stats.noise import NoiseFloor, noise_model


def _effect(value, low=0.0, high=1.0, concurrency=None):
    return Effect(concurrency=concurrency, effect=value, low=low, high=high, launches=(3, 3))


def test_order_is_mirrored_and_small_gains_ask_for_more():
    noise = NoiseFloor(sd=0.04, df=30)
    large = confirmation_plan(_effect(0.5, 0.3), noise, launches_left=40)
    small = confirmation_plan(_effect(0.06, 0.04), noise, launches_left=40)
    assert large.order == ("incumbent", "candidate", "candidate", "incumbent", "incumbent", "candidate")
    assert 6 < len(small.order) <= 40
    assert len(confirmation_plan(_effect(0.06, 0.04), noise, launches_left=5).order) == 4
    assert confirmation_plan(_effect(0.5, 0.3), noise, launches_left=0).order == ()


def test_a_claim_keeps_back_what_its_confirmation_wants_within_a_quarter_of_the_campaign():
    noise = NoiseFloor(sd=0.04, df=60)
    plan = Plan(ideas=10, launches=200)
    assert launches_to_keep(plan, None, noise) == plan.reserve == 12
    assert launches_to_keep(plan, _effect(0.5, 0.3), noise) == 12
    wanted = 2 * fresh_launches(_effect(0.06, 0.02), noise)
    assert 20 < launches_to_keep(plan, _effect(0.06, 0.02), noise) == wanted < 50
    assert launches_to_keep(plan, _effect(0.02, 0.001), noise) == 50
    assert launches_to_keep(Plan(ideas=5, launches=40), _effect(0.06, 0.02), noise) == 10
    small = Plan(ideas=6, launches=16)
    assert launches_to_keep(small, _effect(0.06, 0.02), noise) == small.reserve == 2


@pytest.fixture
def confirmed(launch):
    def make(before, after):
        old = [launch(2 * i + 1, 1600 * s) for i, s in enumerate(before)]
        new = [launch(2 * i + 2, 1600 * s, "--new") for i, s in enumerate(after)]
        return confirm(Goal(), old, new, noise_model(Goal(), old + new))

    return make


def test_only_a_confirmed_gain_makes_a_headline(confirmed):
    good = confirmed([1, 1.01, 0.99], [1.3, 1.31, 1.29])
    assert good.status == "confirmed"
    assert good.headline is not None
    assert good.headline.effect == pytest.approx(0.3, abs=0.02)
    for before, after, status in (
        ([1, 1.04, 0.97], [1.03, 1.05, 1.0], "unresolved"),
        ([1, 1.01, 0.99], [0.8, 0.81, 0.82], "refuted"),
        ([1, 1.01], [1.6, 1.61], "unresolved"),
        ([], [], "not-run"),
    ):
        found = confirmed(before, after)
        assert (found.status, found.headline) == (status, None)


def test_what_is_kept_for_the_confirmation_can_confirm(confirmed):
    kept = [Plan(ideas=5, launches=n).reserve for n in (10, 12, 19, 20, 24, 36, 48, 400)]
    assert kept == [0, 2, 2, 6, 6, 6, 8, 12]
    assert "2 and 2 of them: 3 a side would confirm it" in confirmed([1, 1.01], [1.6, 1.61]).reason


def test_the_headline_is_the_smaller_of_fresh_and_overall(launch):
    old, new = [launch(n) for n in (1, 3, 5)], [launch(n, 1600 * 1.3, "--new") for n in (2, 4, 6)]
    noise = noise_model(Goal(), old + new)
    lower, higher = _effect(0.2, 0.1, 0.3), _effect(0.4, 0.3, 0.5)
    assert confirm(Goal(), old, new, noise, overall=lower).headline == lower
    fresh = confirm(Goal(), old, new, noise, overall=higher)
    assert fresh.headline == fresh.effect


def test_a_champion_that_fails_when_launched_again_is_refuted(launch, rung):
    old, new = [launch(1), launch(4)], [launch(2, rungs=()), launch(3, rungs=())]
    assert confirm(Goal(), old, new, noise_model(Goal(), old)).status == "refuted"


def test_predictions_are_scored_and_summarised():
    predicted = [
        PredictedEffect(concurrency=1, effect=0.1, low=0.05, high=0.15),
        PredictedEffect(concurrency=256, effect=0.2, low=0.1, high=0.3),
        PredictedEffect(concurrency=1024, effect=0.3, low=0.2, high=0.4),
    ]
    measured = [_effect(0.12, concurrency=1), _effect(-0.1, concurrency=256)]
    scores = prediction_scores(predicted, measured)
    assert [(s.concurrency, s.inside, s.sign_right) for s in scores] == [(1, True, True), (256, False, False)]
    found = calibration(scores)
    assert found is not None
    assert (found.scored, found.inside, found.sign_right) == (2, 0.5, 0.5)
    assert found.bias == pytest.approx(0.14)
    assert calibration([]) is None


def test_a_predicted_nothing_that_is_nothing_has_the_right_sign():
    nothing = [PredictedEffect(concurrency=1, effect=0.0, low=-0.02, high=0.02)]
    assert prediction_scores(nothing, [_effect(0.004, concurrency=1)])[0].sign_right
    assert not prediction_scores(nothing, [_effect(0.2, concurrency=1)])[0].sign_right
