"""When a run pauses by itself."""

from dataclasses import dataclass

import pytest

from moeagent.agent.events import Decided, StepBegan
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.pause import PauseWatch, Slice
from moeagent.memory.errors import Interrupted, Paused
from moeagent.memory.ledger import Note

LAUNCH = Decided("launch", Note(about="L1", text="what a launch record holds does not matter here"))


@dataclass
class SetClock:
    """Shows what it was set to."""

    seconds: float = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def asked_after(wanted: Slice, events: int, *, recorded: int = 0, each_s: float = 100.0) -> int | None:
    """The launch after which the pause is asked for."""
    stop, clock = StopRequest(), SetClock()
    watch = PauseWatch(wanted, stop, clock, recorded)
    for number in range(1, events + 1):
        clock.sleep(each_s if number > recorded else 0.0)
        watch(StepBegan("launch"))
        watch(Decided("note", LAUNCH.record))
        watch(LAUNCH)
        if stop():
            return number
    return None


@pytest.mark.parametrize(
    ("wanted", "recorded", "expected"),
    [
        (Slice(launches=3), 0, 3),
        (Slice(launches=3), 4, 7),
        (Slice(minutes=5), 0, 3),
        (Slice(minutes=5), 2, 5),
        (Slice(minutes=5, launches=1), 0, 1),
        (Slice(minutes=60), 0, None),
    ],
)
def test_only_this_process_counts(wanted: Slice, recorded: int, expected: int | None) -> None:
    assert asked_after(wanted, 10, recorded=recorded) == expected


def test_a_planned_pause_is_no_failure_and_a_signal_wins_over_it() -> None:
    stop = StopRequest()
    stop.ask_for_pause("paused after 3 launches in 5.0 minutes")
    with pytest.raises(Paused, match="after 3 launches") as planned:
        stop.check()
    assert planned.value.exit_code == 0
    stop.ask("SIGTERM")
    with pytest.raises(Interrupted, match="stopped by SIGTERM") as forced:
        stop.check()
    assert forced.value.exit_code == 130
