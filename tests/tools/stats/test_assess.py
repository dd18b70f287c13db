import math

import pytest

from moeagent.memory.records import Constraint, Goal, VerdictKind
from moeagent.tools.stats.assess import assess
from moeagent.tools.stats.boundary import Plan
from moeagent.tools.stats.noise import noise_model

PLAN = Plan(ideas=10, launches=60)


@pytest.fixture
def world(launch):
    """Launches of incumbent and candidate at these relative speeds, interleaved."""

    def make(before, after, *, goal=None, earlier=(), left=20, rungs=None):
        goal = goal or Goal()
        old = [launch(2 * i + 1, 1600 * s) for i, s in enumerate(before)]
        new = [launch(2 * i + 2, 1600 * s, "--new") for i, s in enumerate(after)]
        noise = noise_model(goal, old + new, earlier=earlier)
        return assess(goal, old, new, noise, plan=PLAN, launches_left=left)

    return make


def test_a_large_gain_is_improved_after_three_launches_a_side(world):
    steps = [world([1, 1.01, 0.99], [1.5, 1.52, 1.49][:n]) for n in (1, 2, 3)]
    assert [s.verdict for s in steps] == [None, None, VerdictKind.IMPROVED]
    assert steps[0].pursue
    gain = steps[2].goal_effect
    assert gain is not None
    assert gain.effect == pytest.approx(0.5, abs=0.02)
    assert gain.launches == (3, 3)
    assert gain.low > 0


def test_a_known_host_needs_fewer(world, launch):
    earlier = [[launch(i, 1600 * s) for i, s in enumerate([1, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01], 1)]]
    assert world([1.0], [1.6], earlier=earlier).verdict is VerdictKind.IMPROVED
    assert world([1.0], [1.6], earlier=[earlier[0][:4]]).verdict is None


def test_a_clear_loss_is_settled_by_one_launch(world):
    found = world([1, 1.01, 0.99], [0.7])
    assert found.verdict is VerdictKind.REGRESSED
    assert found.need is None


def test_no_effect_is_neutral_only_when_a_gain_is_ruled_out(world):
    open_ = world([1, 1.01, 0.99], [1.0])
    assert (open_.verdict, open_.need, open_.pursue) == (None, "candidate", False)
    quiet = [1, 1.004, 0.997, 1.002, 0.998, 1.003, 0.996, 1.0, 1.001, 0.999]
    assert world(quiet, quiet, goal=Goal(min_effect=0.05)).verdict is VerdictKind.NEUTRAL


def test_out_of_launches_is_inconclusive_and_claims_nothing(world):
    found = world([1, 1.05, 0.95], [1.06, 1.0, 1.09], left=0)
    assert found.verdict is VerdictKind.INCONCLUSIVE
    assert "no launch is left" in found.reason


def test_sides_are_interleaved(world):
    assert world([1, 1.01], [1.02, 1.03]).need == "incumbent"
    assert world([1, 1.01, 1.0], [1.02, 1.03]).need == "candidate"
    assert world([1], [1.02, 1.03]).need == "incumbent"


def test_a_small_true_gain_below_the_minimum_is_never_improved(world):
    quiet = [1, 1.002, 0.998, 1.001, 0.999, 1.0, 1.003, 0.997, 1.001, 0.999, 1.002, 1.0]
    found = world(quiet, [1.02 * s for s in quiet], goal=Goal(min_effect=0.05))
    assert found.verdict is VerdictKind.NEUTRAL


def test_gain_is_positive_for_latency_too(launch, rung):
    goal = Goal(name="min-latency")
    spread = rung().e2e_ms

    def at(number, ms, flag=""):
        slow = spread.model_copy(update={"p50": ms})
        return launch(number, 1600, flag, rungs=(rung(1, 80, e2e_ms=slow),))

    old = [at(1, 1000), at(3, 1010), at(5, 990)]
    new = [at(2, 500, "--new"), at(4, 505, "--new"), at(6, 495, "--new")]
    found = assess(goal, old, new, noise_model(goal, old + new), plan=PLAN, launches_left=9)
    assert found.verdict is VerdictKind.IMPROVED
    assert found.goal_effect is not None
    assert found.goal_effect.effect == pytest.approx(1.0, abs=0.03)


def test_effects_are_reported_per_rung(launch, rung):
    def at(number, factor, flag=""):
        return launch(number, flag=flag, rungs=(rung(1, 80 * factor), rung(256, 1200 / factor)))

    old, new = [at(1, 1), at(3, 1.01), at(5, 0.99)], [at(2, 0.8, "--n"), at(4, 0.81, "--n")]
    found = assess(Goal(), old, new, noise_model(Goal(), old + new), plan=PLAN, launches_left=0)
    assert [e.concurrency for e in found.effects] == [1, 256]
    assert found.effects[0].effect < -0.15 < 0.15 < found.effects[1].effect


def test_without_any_value_the_missing_side_is_asked_for(launch, rung):
    goal = Goal(constraints=(Constraint(metric="ttft", bound=0.1),))
    both = [launch(1)], [launch(2, flag="--new")]
    found = assess(goal, *both, noise_model(goal, both[0]), plan=PLAN, launches_left=3)
    assert (found.verdict, found.log_ratio) == (None, None)


def test_two_launches_that_happen_to_agree_are_not_a_noise_floor_of_zero(world):
    found = world([1, 1, 1], [1.004, 1.004, 1.004], goal=Goal(min_effect=0.001))
    assert found.verdict is not VerdictKind.IMPROVED
    assert found.log_ratio == pytest.approx(math.log(1.004))
