"""The committed example run replays, and holds the crash and the pivot that it was recorded for."""

from pathlib import Path

from moeagent.agent.campaign import replay
from moeagent.memory.records import LaunchOutcome
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView

EXAMPLE = RunFolder(Path(__file__).parents[2] / "runs" / "example-sm120")


def test_the_example_replays_strictly() -> None:
    assert replay(EXAMPLE)["same"]


def test_it_holds_the_crash_under_load_and_the_pivot() -> None:
    view = RunView.read(EXAMPLE)
    died = next(x for x in view.ledger.launches if x.outcome is LaunchOutcome.DIED_SERVING)
    assert died.diagnosis is not None
    assert died.diagnosis.failure_class == "oom.cuda.serve"
    assert died.boundary is not None
    assert died.boundary.first_failed in (128, 256)
    assert view.ledger.pivots[0].hypothesis == died.hypothesis
    assert view.simulated
