"""What may still be spent."""

import pytest

from moeagent.agent.limits import (
    budget_left,
    consecutive_failures,
    experiments_exhausted,
    launches_exhausted,
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
    reason = launches_exhausted(LIMITS, ledger(launches), active_s)
    assert told in reason
    assert bool(reason) is bool(told)


def test_experiments_and_budget() -> None:
    full = ledger([OK], hypotheses=2)
    assert "2 experiments" in experiments_exhausted(LIMITS, full, 0)
    left = budget_left(LIMITS, full, 1800)
    assert (left.experiments, left.launches, left.hours) == (0, 2, 0.5)
    assert consecutive_failures(ledger([OK, DEAD, DEAD])) == 2


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("the limit of 2 experiments is reached", "--limit experiments=N"),
        ("the limit of 8 hours is reached", "--limit hours=N"),
        ("2 launches in a row failed", "--limit consecutive_failures=N"),
        ("ideas exhausted", ""),
    ],
)
def test_the_limit_that_ended_the_run_is_the_one_to_raise(reason: str, hint: str) -> None:
    assert raise_hint(reason) == hint
