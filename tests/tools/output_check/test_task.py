"""Real commands as the user's own check."""

import os
import sys
from pathlib import Path

import pytest

from moeagent.tools.output_check.task import TaskResult, parse_score, run_task

ENV = {"MOEAGENT_BASE_URL": "http://127.0.0.1:9", "MOEAGENT_MODEL": "moe"}


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def test_status_zero_passes_and_its_score_is_read() -> None:
    said = "import json, os; print('asked', os.environ['MOEAGENT_MODEL']); print(json.dumps({'score': 0.83}))"
    found = run_task(python(said), ENV, timeout_s=30)

    assert (found.ok, found.exit_code, found.score) == (True, 0, 0.83)
    assert found.reason(TaskResult(ok=True, exit_code=0, score=0.9)) == (
        "the task check passed, score 0.83 (baseline 0.9)"
    )


def test_another_status_fails_with_what_was_said() -> None:
    found = run_task(python("import sys; sys.exit('3 of 8 answers are wrong')"), ENV, timeout_s=30)

    assert (found.ok, found.exit_code, found.score) == (False, 1, None)
    assert found.reason() == "the task check ended with status 1: 3 of 8 answers are wrong"


def test_a_program_that_is_not_there_fails() -> None:
    found = run_task(("no-such-check",), ENV, timeout_s=30)

    assert (found.ok, found.exit_code) == (False, 127)
    assert "no-such-check" in found.told


def test_what_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    marks = tmp_path / "pids"
    script = f"sleep 300 & echo $! > {marks}; wait"
    found = run_task(("sh", "-c", script), ENV, timeout_s=0.6)

    assert (found.ok, found.exit_code) == (False, None)
    assert found.reason().startswith("the task check ran out of time")
    child = Path(f"/proc/{marks.read_text().strip()}/stat")
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_whoever_waits_can_end_it(tmp_path: Path) -> None:
    marks = tmp_path / "pid"

    def interrupted() -> None:
        if marks.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_task(("sh", "-c", f"echo $$ > {marks}; exec sleep 300"), ENV, timeout_s=60, on_wait=interrupted)

    with pytest.raises(ProcessLookupError):
        os.kill(int(marks.read_text()), 0)


@pytest.mark.parametrize(
    ("printed", "score"),
    [
        ('{"score": 1}\n', 1.0),
        ('{"score": 0.2}\nnoise\n{"score": 0.4, "n": 8}\ndone\n', 0.4),
        ('{"score": "high"}', None),
        ("[1, 2]\n0.7", None),
        ("", None),
    ],
)
def test_scores(printed: str, score: float | None) -> None:
    assert parse_score(printed) == score
