"""One hypothesis whole, on a terminal."""

import io
from pathlib import Path

from parts.made_run import BASELINE, MadeRun, facts, hypothesis, write_run

from moeagent.agent.show.one_hypothesis import flag_diff, print_hypothesis
from moeagent.agent.show.text import console
from moeagent.memory.ledger import Incumbent
from moeagent.memory.records import ConfigChange
from moeagent.memory.run_view import RunView


def shown(view: RunView, id_: str) -> str:
    screen = console()
    screen.width, screen.file = 200, io.StringIO()
    print_hypothesis(view, id_, screen)
    return screen.file.getvalue()


def test_a_failure_with_its_evidence_and_cost(tmp_path: Path) -> None:
    text = shown(RunView.read(write_run(tmp_path)), "H3")
    for told in (
        "+ --chunked-prefill-size 3072",
        "pivot 1: --mem-fraction-static 0.92 -> 0.88",
        "line 3: torch.OutOfMemoryError",
        ".gz line 3",
        "256: 512 failed",
        "cost: 2 launches, 8 min 00 s starting, 4 min 00 s measuring",
        "remedy: lower --mem-fraction-static",
    ):
        assert told in text, told


def test_what_goes_and_what_comes(tmp_path: Path) -> None:
    run = MadeRun(tmp_path, "diff")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    change = ConfigChange(
        set_flags={"--mem-fraction-static": 0.8, "--new": True},
        remove_flags=("--tp-size",),
        set_env={"A": "1"},
    )
    idea = hypothesis(1, change, BASELINE)
    run.decide(idea)
    view = RunView.read(run.close())
    assert flag_diff(view, idea).plain.splitlines() == [
        "- --mem-fraction-static 0.92",
        "- --tp-size 8",
        "+ --mem-fraction-static 0.8",
        "+ --new",
        "+ A=1",
    ]
    assert "cost: 0 launches" in shown(view, "H1")
