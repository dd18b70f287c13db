"""The statistics against known answers, by simulation with fixed seeds."""

import numpy as np
import pytest

from moeagent.tools.stats.boundary import Plan, critical, student, with_unknown_noise
from moeagent.tools.stats.contrast import contrast, interval
from moeagent.tools.stats.noise import correlation, noise_floor

DRAWS = 2000


def _series(at, values):
    return list(zip(at, map(float, values), strict=True))


@pytest.mark.parametrize(("before", "after"), [((1, 3, 5, 7), (2, 4, 6, 8)), ((1, 2, 3), (9, 10, 11, 12))])
def test_interval_covers_the_true_ratio_under_drift(before, after):
    """Expected 95 %; four standard deviations of 2,000 draws are 1.9 points."""
    random = np.random.default_rng(1)
    at = before + after
    root = np.linalg.cholesky(correlation(at)) * 0.04
    inside = 0
    for noise in (random.standard_normal((DRAWS, len(at))) @ root.T) + 7.0:
        a = _series(before, noise[: len(before)])
        b = _series(after, noise[len(before) :] + np.log(1.05))
        found = interval(a, b, noise_floor([a, b]))
        assert found is not None
        inside += found.low <= 0.05 <= found.high
    assert inside / DRAWS == pytest.approx(0.95, abs=0.02)


def test_interval_with_the_hosts_earlier_launches_covers_a_single_pair():
    random = np.random.default_rng(2)
    inside = 0
    for noise in random.normal(0, 0.05, (DRAWS, 10)):
        earlier = [_series((1, 50, 100, 150), noise[:4]), _series((1, 50, 100, 150), noise[4:8])]
        a, b = _series((1,), noise[8:9]), _series((2,), noise[9:])
        found = interval(a, b, noise_floor([a, b], earlier))
        assert found is not None
        inside += found.low <= 0.0 <= found.high
    assert inside / DRAWS == pytest.approx(0.95, abs=0.02)


def test_noise_floor_pools_every_repeated_configuration():
    random = np.random.default_rng(3)
    groups = [_series(range(k, 60, 6), random.normal(k, 0.04, 10)) for k in range(6)]
    floor = noise_floor(groups)
    assert floor.df == 54
    assert floor.sd == pytest.approx(0.04, rel=0.25)


def test_a_steady_drift_does_not_look_like_a_gain():
    at = tuple(range(1, 25))
    drift = [0.004 * t for t in at]
    late = contrast(_series(at[:12], drift[:12]), _series(at[12:], drift[12:]))
    mixed = contrast(_series(at[::2], drift[::2]), _series(at[1::2], drift[1::2]))
    assert late is not None
    assert mixed is not None
    assert abs(mixed.log_ratio) < 0.005
    assert mixed.information > 1.2 * late.information


@pytest.mark.parametrize("looks", [30, 60])
def test_claims_are_rare_however_often_one_looks(looks):
    """Both boundaries together, looked at after every launch of a null idea, keep its share of the error."""
    plan = Plan(ideas=2, launches=3 * looks, alpha=0.1)
    random = np.random.default_rng(4)
    paths = random.standard_normal((20_000, looks)).cumsum(axis=1)
    n = np.arange(1, looks + 1)
    bounds = np.array([critical(k / 2, k, plan, first_look=3) for k in n])
    tested = (n >= 3) & (n / 2 <= plan.horizon)
    crossed = (paths / np.sqrt(n) > bounds)[:, tested].any(axis=1).mean()
    assert 0.5 * plan.alpha / plan.ideas < crossed < plan.alpha / plan.ideas


def test_more_ideas_and_fewer_launches_raise_the_bar():
    few, many = Plan(ideas=2, launches=80), Plan(ideas=20, launches=80)
    assert critical(2.0, 4, many, first_look=3) > critical(2.0, 4, few, first_look=3)
    assert critical(2.0, 4, few, first_look=3) > critical(13.0, 26, few, first_look=3)
    assert with_unknown_noise(3.0, 5) > with_unknown_noise(3.0, 50) > 3.0
    assert student(0.975, 10) == pytest.approx(2.228, abs=0.001)
