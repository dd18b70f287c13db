"""How long a server stood still, by the waves of a closed loop."""

from collections.abc import Sequence
from typing import Any

import pytest

from moeagent.tools.load.stalls import stalled_share

STEP_US, STEPS = 20_000, 50


def answers(pauses_us: Sequence[int]) -> list[dict[str, Any]]:
    """One request after the other, each with a pause of this length in its middle."""
    found, send = [], 0
    for pause in pauses_us:
        gaps = [STEP_US] * STEPS
        gaps[STEPS // 2] += pause
        found.append({"kind": "", "asked": STEPS, "prompt": 10, "send": send, "gaps": gaps})
        send += sum(gaps)
    return found


@pytest.mark.parametrize(
    ("pauses_us", "share"),
    [
        ([0, 0, 0], 0.0),
        ([500_000, 0, 0], round(500_000 / 3_500_000, 4)),
        ([300_000, 300_000, 300_000], 0.0),  # every wave has it: that is how the server works
        ([60_000, 60_000, 0], 0.0),  # a hiccup of the system, however short the rung
    ],
)
def test_a_stall_is_what_one_wave_has_and_another_has_not(pauses_us: list[int], share: float) -> None:
    assert stalled_share(answers(pauses_us), 1, closed_loop=True) == share


def test_nothing_is_said_of_one_wave_or_of_an_open_loop() -> None:
    assert stalled_share(answers([0]), 1, closed_loop=True) is None
    assert stalled_share(answers([0, 500_000]), 1, closed_loop=False) is None
