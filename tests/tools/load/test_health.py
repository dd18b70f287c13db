"""When the client says that it cannot be believed."""

from typing import Any

import pytest

from moeagent.tools.load.health import client_health


def part(**changes: Any) -> dict[str, Any]:
    return {
        "cpu_s": 1.0,
        "wall_s": 10.0,
        "lag_ms": 1.0,
        "run_queue_s": 0.1,
        "crowded_cut": 0,
        "loop": "uvloop",
    } | changes


def answers(*, turn_us: int = 50, crowded: int = 0, late_us: int | None = None) -> list[dict[str, Any]]:
    made = []
    for number in range(50):
        send = number * (1_000_000 + turn_us)
        gaps = [50_000, *[20_000] * 47, 10_000]
        due = None if late_us is None else send - late_us
        made.append({"slot": 0, "send": send, "end": send + sum(gaps), "gaps": gaps, "due": due})
        made[-1] |= {"kind": "", "crowded": crowded}
    return made


CLOSED = {"concurrency": 1}


def test_a_quiet_client_is_valid() -> None:
    health = client_health([part()], answers(), CLOSED)

    assert (health.valid, health.why) == (True, "")
    assert health.core_use == 0.11


@pytest.mark.parametrize(
    ("parts", "given", "plan", "reason"),
    [
        ([part(cpu_s=8.0)], answers(), CLOSED, "of a core"),
        ([part(run_queue_s=7.0)], answers(), CLOSED, "of a core"),
        ([part(), part(cpu_s=9.0)], answers(), CLOSED, "of a core"),
        ([part(lag_ms=30.0)], answers(), CLOSED, "event loop lags"),
        ([part(lag_ms=8.0)], answers(crowded=3), CLOSED, "read late, together"),
        ([part()], answers(turn_us=60_000), CLOSED, "in flight"),
        ([part()], answers(turn_us=5_000), CLOSED, "ms late"),
        ([part()], answers(late_us=9_000), {"concurrency": 8, "rate": 1.0}, "ms late"),
    ],
)
def test_each_distortion_is_named(parts: list, given: list, plan: dict, reason: str) -> None:
    health = client_health(parts, given, plan)

    assert not health.valid
    assert reason in health.why


def test_events_that_a_tunnel_joined_are_not_the_clients_fault() -> None:
    health = client_health([part(lag_ms=1.0)], answers(crowded=10), CLOSED)

    assert health.valid
    assert health.crowded_reads is not None
    assert health.crowded_reads > 0.02
