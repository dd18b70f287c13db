"""The labelled cases: the rates that were reached, held as the floor."""

import pytest
from bench.diagnosis.scoring import FIXTURES, load_cases, score_all, share

from moeagent.tools.diagnosis import load_catalogue

CLASS, ROOT, REMEDY, FIRST_REMEDY = 0.99, 0.99, 0.95, 0.74
"""Reached on all 105 cases: 1.00, 1.00, 0.97 and 0.75 (asked: 0.92, 0.85, 0.75)."""
LEFT_OUT_CLASS, LEFT_OUT_FAMILY, LEFT_OUT_ROOT = 0.70, 0.78, 0.77
"""Reached by structure alone, with the case's own class of signatures removed: 0.73, 0.81 and 0.79."""


@pytest.fixture(scope="module")
def scores():
    return score_all(load_catalogue())


@pytest.mark.parametrize(
    ("field", "floor"),
    [("right_class", CLASS), ("right_root", ROOT), ("right_remedy", REMEDY), ("first_remedy", FIRST_REMEDY)],
)
def test_reaches_its_rate(scores, field, floor):
    wrong = [one.case for one in scores if not getattr(one, field)]
    assert share(scores, field) >= floor, wrong


def test_no_benign_case_raises_an_alarm(scores):
    assert [one.case for one in scores if one.benign and not one.healthy] == []


def test_no_failure_is_called_healthy(scores):
    assert [one.case for one in scores if one.healthy and not one.benign] == []


def test_structure_alone_when_the_class_is_left_out():
    scores = [one for one in score_all(load_catalogue(), without_own_class=True) if not one.benign]
    assert share(scores, "right_class") >= LEFT_OUT_CLASS
    assert share(scores, "right_family") >= LEFT_OUT_FAMILY
    assert share(scores, "right_root") >= LEFT_OUT_ROOT


def test_every_case_names_its_source():
    assert all(case["source"] for case in load_cases())
    assert (FIXTURES / "README.md").exists()
