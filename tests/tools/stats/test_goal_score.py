import pytest

from moeagent.memory.records import Constraint, Goal
from moeagent.tools.stats.metrics import broken, metric
from moeagent.tools.stats.score import goal_series, position, score, unmeasured


def test_throughput_is_that_of_the_best_rung(rung):
    found = score(Goal(), [rung(1, 80), rung(256, 1200), rung(1024, 1100)])
    assert found is not None
    assert (found.value, found.concurrency) == (pytest.approx(1200), 256)


def test_repeats_within_a_launch_are_averaged(rung):
    found = score(Goal(), [rung(256, 1000), rung(256, 1210)])
    assert found is not None
    assert found.value == pytest.approx(1100)


def test_latency_is_that_of_the_lowest_rung_that_holds(rung):
    fast = score(Goal(name="min-latency"), [rung(1, 80), rung(256, 1200)])
    loaded = Goal(name="min-latency", constraints=(Constraint(metric="output_tok_s", bound=1000),))
    busy = score(loaded, [rung(1, 80), rung(256, 1200)])
    assert fast is not None
    assert busy is not None
    assert (fast.concurrency, fast.value) == (1, pytest.approx(0.03))
    assert busy.concurrency == 256


def test_cost_by_price_by_energy_or_unknown(rung):
    goal = Goal(name="min-cost")
    priced = score(goal, [rung(256, 1000)], price_per_hour=36)
    metered = score(goal, [rung(256, 1000, energy_j=50_000.0)])
    assert priced is not None
    assert metered is not None
    assert priced.value == pytest.approx(10.0)
    assert metered.value == pytest.approx(500_000)
    assert score(goal, [rung(256, 1000)]) is None


def test_a_rung_without_its_power_speaks_neither_for_nor_against(rung, launch):
    goal = Goal(name="min-cost")
    assert unmeasured(goal, rung(256, 1000))
    assert not unmeasured(goal, rung(256, 1000, energy_j=1.0))
    assert not unmeasured(goal, rung(256, 1000), 36.0)
    assert not unmeasured(goal, rung(256, None, completed=0, failed=9)), "the server's failure counts"
    known = launch(1, rungs=(rung(256, 1000, energy_j=50_000.0),))
    series, best = goal_series(goal, [known, launch(2, rungs=(rung(256, 2000),))], strict=True)
    assert ([at for at, _ in series], best) == ([1], 256)


def test_goodput_not_measured_is_no_value(rung):
    assert score(Goal(name="max-goodput"), [rung()]) is None
    found = score(Goal(name="max-goodput"), [rung(goodput_rps=3.0)])
    assert found is not None
    assert found.value == pytest.approx(3.0)


@pytest.mark.parametrize(
    "changes",
    [{"failed": 1}, {"invalid": "client distorted"}, {"completed": 0}, {"output_tok_s": None}],
)
def test_a_rung_that_failed_is_no_value_and_never_zero(rung, changes):
    assert score(Goal(), [rung(1024, 9999, **changes)]) is None


def test_one_bad_repeat_takes_its_concurrency_out(rung):
    found = score(Goal(), [rung(256, 1000), rung(1024, 1600), rung(1024, 1600, failed=3)])
    assert found is not None
    assert found.concurrency == 256


def test_failures_are_tolerated_below_the_users_own_bound(rung):
    goal = Goal(constraints=(Constraint(metric="error_rate", bound=0.01),))
    assert score(goal, [rung(1024, failed=3)]) is not None
    assert score(goal, [rung(1024, failed=300)]) is None


def test_constraints_fail_closed_and_say_why(rung):
    slo = Constraint(metric="ttft", percentile="p99", bound=0.9)
    assert metric(rung(), slo) == pytest.approx(1.0)
    assert broken(rung(), [slo]) == ("concurrency 1024: ttft_p99 1 is above 0.9",)
    assert broken(rung(ttft_ms=None), [slo]) == ("concurrency 1024: ttft_p99 was not measured",)
    assert broken(rung(), [Constraint(metric="output_tok_s", bound=2000)]) == (
        "concurrency 1024: output_tok_s 1600 is below 2000",
    )
    assert broken(rung(), [Constraint(metric="ttft", percentile="p50", bound=0.9)]) == ()


def test_an_incumbents_one_bad_launch_does_not_lower_the_bar(rung, launch):
    good = (rung(256, 1000), rung(1024, 1600))
    bad = (rung(256, 1000), rung(1024, 1600, failed=1))
    launches = [launch(1, rungs=good), launch(2, rungs=bad), launch(3, rungs=good)]
    series, best = goal_series(Goal(), launches, strict=False)
    assert best == 1024
    assert [at for at, _ in series] == [1, 3]
    assert goal_series(Goal(), launches, strict=True)[1] == 256


def test_position_is_the_number_in_the_id(launch):
    assert position(launch(17)) == 17
