"""What may still be spent."""

import pytest

from moeagent.agent.limits import (
    Spending,
    budget_left,
    consecutive_failures,
    experiments_exhausted,
    launches_exhausted,
    model_hint,
    raise_hint,
)
from moeagent.agent.settings import LimitSettings
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import ConfigChange, Hypothesis, Launch, LaunchOutcome, ServerConfig

LIMITS = LimitSettings(experiments=2, launches=3, hours=1.0, consecutive_failures=2)


def ledger(launches: list[LaunchOutcome], hypotheses: int = 0) -> Ledger:
    found = Ledger()
    for n, outcome in enumerate(launches):
        config = ServerConfig(engine="sglang")
        found.add(Launch(id=f"L{n}", hypothesis=None, config=config, command="", outcome=outcome))
    for n in range(hypotheses):
        found.add(
            Hypothesis(
                id=f"H{n}",
                statement="s",
                reason="r",
                change=ConfigChange(),
                parent="p",
                refuted_by="x",
                source="user",
            )
        )
    return found


OK, DEAD = LaunchOutcome.COMPLETED, LaunchOutcome.DIED_STARTING


@pytest.mark.parametrize(
    ("launches", "active_s", "told"),
    [
        ([OK], 0, ""),
        ([OK] * 3, 0, "3 launches"),
        ([OK], 3600, "1 hours"),
        ([DEAD, DEAD], 0, "2 launches in a row failed"),
        ([DEAD, OK], 0, ""),
    ],
)
def test_launches(launches: list[LaunchOutcome], active_s: float, told: str) -> None:
    reason = launches_exhausted(LIMITS, ledger(launches), Spending(active_s=active_s))
    assert told in reason
    assert bool(reason) is bool(told)


@pytest.mark.parametrize(
    ("limit", "spent", "told"),
    [
        ({"gpu_hours": 8}, {"active_s": 1800, "next_s": 1700}, ""),
        ({"gpu_hours": 8}, {"active_s": 1800, "next_s": 1900}, "8 GPU-hours would be passed: 4 are spent"),
        ({"gpu_hours": 8}, {"active_s": 3600}, "8 GPU-hours is reached"),
        ({"hours": 1}, {"active_s": 3000, "next_s": 700}, "1 hours would be passed: 0.833 are spent"),
        ({"money": 10}, {"active_s": 1800, "next_s": 1700}, ""),
        ({"money": 10}, {"active_s": 1800, "next_s": 1900}, "10 units of money would be passed"),
        ({"money": 10}, {"active_s": 1800, "model_money": 5.1}, "10 units of money is reached"),
    ],
)
def test_a_launch_that_would_pass_a_limit_is_not_started(
    limit: dict[str, float], spent: dict[str, float], told: str
) -> None:
    limits = LimitSettings.model_validate({"hours": 1e6, **limit})
    spending = Spending.model_validate({"gpus": 8, "price_per_hour": 10.0, **spent})
    reason = launches_exhausted(limits, ledger([OK]), spending)
    assert told in reason
    assert bool(reason) is bool(told)
    assert "is not started" in reason or "would be passed" not in reason


def test_the_option_that_lets_the_language_model_go_on() -> None:
    silenced = "the playbook has the turn: the limit of 100 calls for the language model is reached"
    assert model_hint(["L1 was started again", silenced]) == "--limit llm_calls=N"
    assert model_hint(["the limit of 3 launches is reached"]) == ""


def test_experiments_and_budget() -> None:
    full = ledger([OK], hypotheses=2)
    assert "2 experiments" in experiments_exhausted(LIMITS, full, Spending(active_s=0))
    left = budget_left(LIMITS, full, 1800)
    assert (left.experiments, left.launches, left.hours) == (0, 2, 0.5)
    assert consecutive_failures(ledger([OK, DEAD, DEAD])) == 2


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("the limit of 2 experiments is reached", "--limit experiments=N"),
        ("the limit of 8 hours is reached", "--limit hours=N"),
        ("the limit of 8 GPU-hours is reached", "--limit gpu_hours=N"),
        ("the limit of 8 GPU-hours would be passed: 7 are spent", "--limit gpu_hours=N"),
        ("the limit of 20 units of money would be passed: 19 are spent", "--limit money=N"),
        ("2 launches in a row failed", "--limit consecutive_failures=N"),
        ("ideas exhausted", ""),
    ],
)
def test_the_limit_that_ended_the_run_is_the_one_to_raise(reason: str, hint: str) -> None:
    assert raise_hint(reason) == hint


def test_a_budget_kept_for_the_confirmation_is_raised_by_launches() -> None:
    assert raise_hint("6 launches are left, 6 of them reserved") == "--limit launches=N"
