"""What a language model is shown, and what of its answers is accepted."""

import pytest
from bench.diagnosis.synthetic import CRASH, STARTUP, block

from moeagent.tools.diagnosis import accept_model_answer, select_lines

LOG = STARTUP + block(1, 900).decode() + "[2026-02-20 18:00:00 TP1] FluxError: the flux is off\n" + CRASH
NUMBER = LOG[: LOG.index("[2026-02-20 18:00:00 TP1]")].count("\n") + 1
ANSWER = {
    "class": "runtime.engine_bug",
    "line_no": NUMBER,
    "root_line": "[2026-02-20 18:00:00 TP1] FluxError: the flux is off",
}


def test_at_most_sixty_numbered_lines_with_the_cause_among_them():
    lines = select_lines(LOG)
    assert len(lines) <= 60
    assert lines == sorted(lines)
    assert NUMBER in dict(lines)
    assert any("CUDA out of memory" in text for _, text in lines)


def test_an_answer_that_points_to_a_real_line_is_marked_as_the_models():
    answer = accept_model_answer(LOG, {**ANSWER, "confidence": 0.99})
    assert answer.by == "model"
    assert answer.line_no == NUMBER
    assert answer.confidence <= 0.6
    assert not answer.healthy


def test_a_wrong_number_with_the_right_words_is_mended():
    assert accept_model_answer(LOG, {**ANSWER, "line_no": 3}).line_no == NUMBER


@pytest.mark.parametrize(
    "change",
    [{"root_line": "a line that is not there"}, {"class": "no.such"}, {"line_no": "x"}, {"root_line": ""}],
)
def test_an_answer_about_nothing_is_refused(change):
    assert accept_model_answer(LOG, {**ANSWER, **change}) is None


@pytest.mark.parametrize("answer", [None, "text", [], {"class": "benign.none"}])
def test_an_answer_of_another_shape_is_refused(answer):
    assert accept_model_answer(LOG, answer) is None
