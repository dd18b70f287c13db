import random

import pytest

from moeagent.agent.judge import Case, judge
from moeagent.memory.records import (
    ClientHealth,
    ConfigChange,
    Constraint,
    Diagnosis,
    EngineFacts,
    Goal,
    Hypothesis,
    Knob,
    Launch,
    LaunchOutcome,
    PredictedEffect,
    Rung,
    ServerConfig,
    VerdictKind,
)
from moeagent.tools.output_check.sample import Evidence, OutputVerdict
from moeagent.tools.output_check.task import TaskResult
from moeagent.tools.stats.boundary import Plan
from moeagent.tools.stats.noise import noise_model

BASE = ServerConfig(engine="sglang", flags={"--tp-size": 8})
CHANGE = ConfigChange(set_flags={"--enable-mscclpp": True})


def _rungs(factor=1.0, ladder=(1, 256, 1024), **changes):
    fields = {
        "failed": 0, "duration_s": 60.0, "total_tok_s": None,
        "client": ClientHealth(cpu_s=1, loop_lag_ms=0.1, valid=True),
    } | changes  # fmt: skip
    speeds = {1: 80.0, 256: 1100.0, 1024: 1600.0}
    return tuple(
        Rung.model_validate({"concurrency": c, "completed": c, "output_tok_s": speeds[c] * factor} | fields)
        for c in ladder
    )


def _launch(number, rungs, *, new=False, outcome=LaunchOutcome.COMPLETED, effective=None, diagnosis=None):
    return Launch(
        id=f"L{number}",
        hypothesis="H1" if new else None,
        config=BASE.apply(CHANGE) if new else BASE,
        command="serve",
        outcome=outcome,
        rungs=rungs,
        effective=effective or {},
        diagnosis=diagnosis,
    )


def _judge(before, after, goal=None, left=20, change=CHANGE, **fields):
    goal = goal or Goal()
    hypothesis = Hypothesis(
        id="H1", statement="s", reason="r", change=change, parent=BASE.id, refuted_by="x", source="search",
        predicted=(PredictedEffect(concurrency=1024, effect=0.1, low=0.05, high=0.2),),
    )  # fmt: skip
    return judge(
        Case(
            hypothesis=hypothesis,
            goal=goal,
            incumbent=tuple(before),
            candidate=tuple(after),
            noise=noise_model(goal, [*before, *after]),
            plan=Plan(ideas=10, launches=60),
            launches_left=left,
            **fields,
        )
    )


@pytest.fixture
def baseline():
    return [_launch(n, _rungs(f)) for n, f in ((1, 1.0), (3, 1.01), (5, 0.99))]


def _good(factor=1.5, count=3, **fields):
    return [
        _launch(2 * n, _rungs(factor * f), new=True, **fields)
        for n, f in zip((1, 2, 3), (1, 1.01, 0.99), strict=True)
    ][:count]


def test_improved_carries_the_effects_and_scores_the_prediction(baseline):
    verdict = _judge(baseline, _good()).verdict
    assert verdict is not None
    assert verdict.kind is VerdictKind.IMPROVED
    assert verdict.supported_gain == verdict.goal_effect
    assert verdict.goal_effect is not None
    assert verdict.goal_effect.low > 0
    assert [e.concurrency for e in verdict.effects] == [1, 256, 1024]
    assert [(p.concurrency, p.inside, p.sign_right) for p in verdict.predictions] == [(1024, False, True)]


def test_fewer_than_three_launches_a_side_are_never_improved(baseline):
    assert _judge(baseline, _good(3.0, count=2)).verdict is None
    assert _judge(baseline[:2], _good(3.0)).verdict is None
    last = _judge(baseline, _good(3.0, count=2), left=0).verdict
    assert last is not None
    assert last.kind is VerdictKind.INCONCLUSIVE
    assert last.supported_gain is None


def test_a_rung_that_only_one_side_was_asked_for_decides_nothing(baseline):
    """A canary may be the best rung of all, and the incumbent was never asked for it."""
    canary = _rungs(ladder=(1024,))[0].model_copy(update={"concurrency": 512})
    slower = [launch.model_copy(update={"rungs": (*launch.rungs, canary)}) for launch in _good(0.6)]
    verdict = _judge(baseline, slower, ladder=(1, 256, 1024)).verdict
    assert verdict is not None
    assert verdict.kind is VerdictKind.REGRESSED
    assert verdict.goal_effect is not None
    assert verdict.goal_effect.effect == pytest.approx(-0.4, abs=0.03)


def test_nothing_measured_yet_asks_for_the_candidate(baseline):
    found = _judge(baseline, [])
    assert (found.verdict, found.need, found.assessment.pursue) == (None, "candidate", True)


@pytest.mark.parametrize("outcome", ["died-starting", "hung-starting", "refused"])
def test_what_never_worked_is_blocked_with_its_cause(baseline, outcome):
    cause = Diagnosis.model_validate({
        "class": "oom.kv_pool.startup", "confidence": 0.9, "root_line": "x", "line_no": 1, "stage": "kv_pool",
        "explanation": "",
    })  # fmt: skip
    dead = _launch(2, (), new=True, outcome=LaunchOutcome(outcome), diagnosis=cause)
    verdict = _judge(baseline, [dead]).verdict
    assert verdict is not None
    assert verdict.kind is VerdictKind.BLOCKED
    assert verdict.reason == f"{outcome}: oom.kv_pool.startup"


def test_dead_under_load_is_regressed_with_its_boundary_and_effects(baseline):
    rungs = _rungs(0.88, ladder=(1,)) + _rungs(ladder=(256,), completed=0, output_tok_s=None)
    dead = _launch(2, rungs, new=True, outcome=LaunchOutcome.DIED_SERVING)
    verdict = _judge(baseline, [dead]).verdict
    assert verdict is not None
    assert verdict.kind is VerdictKind.REGRESSED
    assert verdict.broken_constraints == ("serves 1 concurrent requests and dies above",)
    assert verdict.effects[0].effect == pytest.approx(-0.12, abs=0.01)
    assert verdict.goal_effect is None


def test_a_client_that_distorts_is_measured_once_more_and_then_invalid(baseline):
    bad = [_launch(n, _rungs(9.0, invalid="the client was saturated"), new=True) for n in (2, 4)]
    assert _judge(baseline, bad[:1]).need == "candidate"
    verdict = _judge(baseline, bad).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.supported_gain) == (VerdictKind.INVALID, None)
    assert verdict.reason == "the client was saturated"


def test_a_gain_by_energy_is_not_claimed_over_launches_whose_power_is_unknown(baseline):
    goal = Goal(name="min-cost")
    metered = [_launch(n, _rungs(energy_j=50_000.0), new=True) for n in (2, 4, 6)]
    verdict = _judge(baseline, metered, goal=goal).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.supported_gain) == (VerdictKind.INVALID, None)
    verdict = _judge(metered, _good(9.0), goal=goal).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.supported_gain) == (VerdictKind.INVALID, None)
    assert "power is not known" in verdict.reason


def test_a_flag_that_the_server_ignores_is_a_no_op_every_time():
    for seed in range(50):
        draw = random.Random(seed)
        noise = [draw.uniform(0.5, 2.0) for _ in range(6)]
        shown = {"--tp-size": 8, "--enable-mscclpp": False, "--max-total-tokens": seed}
        old = [_launch(n, _rungs(f), effective=shown) for n, f in enumerate(noise[:3], 1)]
        new = [_launch(n, _rungs(f), new=True, effective=shown) for n, f in enumerate(noise[3:], 4)]
        verdict = _judge(old, new[: 1 + seed % 3]).verdict
        assert verdict is not None
        assert (verdict.kind, verdict.supported_gain) == (VerdictKind.NO_OP, None)
        assert "--enable-mscclpp" in verdict.reason


def test_sizes_that_differ_between_launches_of_one_configuration_do_not_hide_a_no_op():
    old = [
        _launch(n, _rungs(), effective={"--enable-mscclpp": False, "--max-total-tokens": n}) for n in (1, 2)
    ]
    new = [_launch(3, _rungs(), new=True, effective={"--enable-mscclpp": False, "--max-total-tokens": 3})]
    verdict = _judge(old, new).verdict
    assert verdict is not None
    assert verdict.kind is VerdictKind.NO_OP


def test_a_flag_that_the_installed_version_reads_nowhere_is_a_no_op(baseline):
    unread = Knob(name="--enable-mscclpp", kind="bool", status="unread")
    facts = EngineFacts(engine="sglang", version="0.5", knobs=(unread,))
    verdict = _judge(baseline, _good(), facts=facts).verdict
    assert verdict is not None
    assert verdict.kind is VerdictKind.NO_OP


def test_fast_and_wrong_is_regressed_every_time(baseline):
    wrong = OutputVerdict(
        ok=False, evidence=(Evidence(batch_size=64, detector="agreement", message="3 % as in the baseline"),)
    )
    for count in (1, 2, 3):
        verdict = _judge(baseline, _good(1.3, count), output=wrong).verdict
        assert verdict is not None
        assert (verdict.kind, verdict.supported_gain) == (VerdictKind.REGRESSED, None)
        assert "batch 64: 3 % as in the baseline" in verdict.reason
    right = _judge(baseline, _good(1.5), output=OutputVerdict(ok=True)).verdict
    assert right is not None
    assert right.kind is VerdictKind.IMPROVED


def test_a_gain_needs_the_users_own_check(baseline):
    passed = TaskResult(ok=True, exit_code=0, score=0.8)
    failed = TaskResult(ok=False, exit_code=1, score=0.1, told="wrong")
    assert (
        _judge(baseline, _good(), task=passed, task_of_baseline=passed).verdict.kind is VerdictKind.IMPROVED
    )
    for count in (1, 2, 3):
        wrong = _judge(baseline, _good(count=count), task=failed, task_of_baseline=passed).verdict
        assert wrong is not None
        assert (wrong.kind, wrong.supported_gain) == (VerdictKind.REGRESSED, None)
        assert wrong.reason == "the task check ended with status 1, score 0.1 (baseline 0.8): wrong"
    unseen = _judge(baseline, _good(), task_of_baseline=passed)
    assert (unseen.verdict, unseen.need) == (None, "candidate")
    last = _judge(baseline, _good(), task_of_baseline=passed, left=0).verdict
    assert last is not None
    assert (last.kind, last.supported_gain) == (VerdictKind.INCONCLUSIVE, None)


def test_a_newly_broken_constraint_is_regressed(baseline):
    goal = Goal(constraints=(Constraint(metric="error_rate", bound=0.01),))
    faulty = _launch(2, _rungs(2.0, failed=500), new=True)
    verdict = _judge(baseline, [faulty], goal=goal).verdict
    assert verdict is not None
    assert verdict.kind is VerdictKind.REGRESSED
    assert "concurrency 1024: error_rate 0.3281 is above 0.01" in verdict.broken_constraints


def test_failed_requests_are_no_value_however_fast(baseline):
    verdict = _judge(baseline, [_launch(2, _rungs(5.0, failed=1), new=True)]).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.goal_effect) == (VerdictKind.REGRESSED, None)


def test_the_first_configuration_that_holds_the_constraints_is_improved_by_no_number():
    goal = Goal(constraints=(Constraint(metric="error_rate", bound=0.01),))
    old = [_launch(n, _rungs(failed=500)) for n in (1, 3, 5)]
    found = _judge(old, _good(1.0, 1), goal=goal)
    assert (found.verdict, found.need) == (None, "candidate")
    verdict = _judge(old, _good(1.0), goal=goal).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.supported_gain) == (VerdictKind.IMPROVED, None)


def test_a_small_difference_stays_open_for_the_allocator(baseline):
    found = _judge(baseline, _good(1.02, 1))
    assert found.verdict is None
    assert found.assessment.log_ratio == pytest.approx(0.02, abs=0.01)
