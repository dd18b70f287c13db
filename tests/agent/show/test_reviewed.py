"""What a reviewer wrote, and what came from earlier runs, in every output."""

import io
from pathlib import Path

import pytest
from parts.made_run import BASELINE, MadeRun, facts, hypothesis, verdict

from moeagent.agent.show.html.page import page
from moeagent.agent.show.log import print_log
from moeagent.agent.show.one_hypothesis import print_hypothesis
from moeagent.agent.show.report import log_markdown, markdown
from moeagent.agent.show.seen import ideas_left
from moeagent.agent.show.text import console
from moeagent.memory.ledger import Incumbent
from moeagent.memory.records import ConfigChange, VerdictKind
from moeagent.memory.review import Review, append_review, read_reviews
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView

PRIOR = "run 20261101-230000-ab12 (exact)"


@pytest.fixture
def reviewed(tmp_path: Path) -> RunFolder:
    run = MadeRun(tmp_path, "reviewed")
    run.decide(facts())
    run.decide(Incumbent(config=BASELINE, hypothesis=None))
    run.launch(BASELINE)
    change = ConfigChange(set_flags={"--x": 1})
    run.decide(hypothesis(1, change, BASELINE, prior=PRIOR))
    run.launch(BASELINE.apply(change), "H1")
    run.decide(verdict(1, VerdictKind.NEUTRAL, 0.0))
    folder = run.close()
    append_review(folder, Review(at="2026-11-29", about="L2", text="a neighbour | was <b>loud</b>"))
    append_review(folder, Review(at="2026-11-30", about="H1", judgement="rejected", text="measured twice"))
    return folder


def test_reports_tell_both(reviewed: RunFolder) -> None:
    view, reviews = RunView.read(reviewed), read_reviews(reviewed)
    text = markdown(view, reviews)
    assert "| H1 | rejected | measured twice | 2026-11-30 |" in text
    assert "neutral, rejected by a reviewer" in text
    assert "a neighbour \\| was &lt;b&gt;loud" in text
    assert f"| H1 | Chunked prefill of 1 KiB keeps the GPUs busier | {PRIOR} | neutral |" in text
    assert "rejected by a reviewer" in log_markdown(view, reviews)
    drawn = page(reviewed, view)
    assert "measured twice" in drawn
    assert "From earlier runs" in drawn
    assert drawn.count(PRIOR) == 2


def test_the_log_tells_both(reviewed: RunFolder) -> None:
    view, screen = RunView.read(reviewed), console()
    screen.file = out = io.StringIO()
    print_log(view, screen, read_reviews(reviewed))
    assert "rejected by a reviewer, H1: measured twice" in out.getvalue()
    screen.file = whole = io.StringIO()
    print_hypothesis(view, "H1", screen, read_reviews(reviewed))
    assert f"known from {PRIOR}" in whole.getvalue()
    assert "note by a reviewer, L2: a neighbour | was <b>loud</b>" in whole.getvalue()


def test_a_run_without_either_says_nothing_of_it(reviewed: RunFolder) -> None:
    plain = markdown(RunView.read(reviewed))
    assert "reviewer" not in plain


def test_what_is_left_names_the_ideas_that_the_playbook_ranks_next(reviewed: RunFolder) -> None:
    example = RunFolder(Path(__file__).parents[3] / "runs" / "example-sm120")
    ideas = ideas_left(example)
    assert 0 < len(ideas) <= 5
    assert all("predicted +" in idea and "risk" in idea for idea in ideas)
    view = RunView.read(example)
    section = markdown(view, (), ideas).partition("### Another setting")[2].partition("## Spent")[0]
    assert section.count("\n- ") >= len(ideas)
    assert ideas_left(reviewed) == ()
