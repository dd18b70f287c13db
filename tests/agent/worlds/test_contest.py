"""Budget, scoring, and every policy on a simulated world."""

from importlib.util import find_spec

import pytest

from moeagent.agent.worlds.bench import Bench, BudgetSpentError, Choice, Claim, cut_short
from moeagent.agent.worlds.contest import contest, play, score
from moeagent.agent.worlds.optuna_search import LEFT_OUT, choices
from moeagent.agent.worlds.policies import NAMES, policy_by_name
from moeagent.agent.worlds.preflight import Preflight
from moeagent.memory.errors import InputError
from moeagent.memory.records import LaunchOutcome
from moeagent.tools.sim.families import draw_worlds, placebo_worlds
from moeagent.tools.sim.space import SpaceKnob, with_choice

WORLD = draw_worlds(3)[2]
"""A consumer card with a small MoE."""
WITHOUT_TORCH = tuple(name for name in NAMES if not name.startswith("gp"))


def test_a_budget_is_a_budget() -> None:
    bench = Bench(WORLD, 1)
    bench.launch(WORLD.baseline)
    with pytest.raises(BudgetSpentError, match="all 1 launches"):
        bench.launch(WORLD.baseline)


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_every_policy_spends_at_most_its_launches_and_begins_with_the_baseline(name) -> None:
    bench = Bench(WORLD, 5)
    choice = policy_by_name(name).run(bench, seed=1)
    assert bench.trials[0].config == WORLD.baseline
    assert len(bench.trials) <= 5
    assert choice.best in [trial.config for trial in bench.trials]


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_equal_seeds_give_equal_results(name) -> None:
    policy = policy_by_name(name)
    assert play(policy, WORLD, seed=7, launches=4) == play(policy, WORLD, seed=7, launches=4)


def test_the_preflight_saves_crashes() -> None:
    worlds = draw_worlds(4)
    plain, behind = (
        contest(policy_by_name(f"random{x}"), worlds, seed=0, launches=6) for x in ("", "+preflight")
    )
    assert sum(w.crashed for w in behind.worlds) < sum(w.crashed for w in plain.worlds)


def test_the_preflight_names_what_the_engine_refuses() -> None:
    found = Preflight(Bench(WORLD, 1)).objection(with_choice(WORLD.baseline, "--tp-size", 8))
    assert found is not None


def test_a_claim_is_false_where_nothing_helps() -> None:
    world = placebo_worlds(1)[0]
    other = with_choice(world.baseline, "--stream-interval", 4)
    bench = Bench(world, 2)
    bench.launch(world.baseline)
    result = score(bench, Choice(other, (Claim(other, world.baseline),)))
    assert (result.false_gains, result.true_gains) == (1, 0)


def test_a_true_claim_and_the_launch_that_found_it() -> None:
    best, _ = WORLD.oracle()
    bench = Bench(WORLD, 3)
    for config in (WORLD.baseline, best):
        bench.launch(config)
    result = score(bench, Choice(best, (Claim(best, WORLD.baseline),)))
    assert (result.best_over_oracle, result.launches_to_95, result.true_gains) == (1.0, 2, 1)


def test_a_stopped_launch_costs_less_and_has_no_value() -> None:
    whole = Bench(WORLD, 1).launch(WORLD.baseline).outcome
    cut = cut_short(whole, lambda rung: rung.concurrency >= WORLD.workload.ladder[1])
    assert cut.outcome is LaunchOutcome.STOPPED
    assert [rung.concurrency for rung in cut.rungs] == list(WORLD.workload.ladder[:2])
    assert cut.cost_s == pytest.approx(whole.cost_s - sum(r.duration_s for r in whole.rungs[2:]))


def test_the_baselines_own_value_is_among_the_choices() -> None:
    knob = SpaceKnob(name="--mem-fraction-static", values=(0.9,))
    start = with_choice(WORLD.baseline, knob.name, 0.81)
    assert set(choices(knob, start)) == {"0.81", "0.9", LEFT_OUT}


def test_an_unknown_policy_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean playbook"):
        policy_by_name("playbok")


@pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch is installed")
def test_the_gaussian_process_search_says_what_it_lacks() -> None:
    with pytest.raises(InputError, match=r"needs PyTorch: pip install 'moeagent\[gp\]'"):
        policy_by_name("gp").run(Bench(WORLD, 2), seed=0)
