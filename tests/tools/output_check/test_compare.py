import pytest

from moeagent.tools.output_check.compare import compare, prefix_agreement
from moeagent.tools.output_check.sample import Answer, BatchSample, OutputSample

WORDS = (
    "one",
    "by",
    "one",
    "the",
    "small",
    "boats",
    "left",
    "the",
    "harbour",
    "and",
    "went",
    "out",
    "to",
    "sea",
)


def _sample(change=lambda answer, batch: answer, **fields):
    batches = []
    for size in (1, 8, 64):
        texts = [" ".join(WORDS[i % 4 :]) for i in range(max(size, 8))]
        answers = [Answer.model_validate({"prompt": i, "text": t} | fields) for i, t in enumerate(texts)]
        batches.append(BatchSample(batch_size=size, answers=tuple(change(a, size) for a in answers)))
    return OutputSample(batches=tuple(batches))


def _at_64(**fields):
    return _sample(lambda a, size: a.model_copy(update=fields) if size == 64 else a)


def _found(candidate, baseline=None, **options):
    return [
        (e.batch_size, e.detector) for e in compare([baseline or _sample()], candidate, **options).evidence
    ]


def test_equal_outputs_agree():
    found = compare([_sample(), _sample()], _sample())
    assert found.ok
    assert found.reason == "outputs agree"


def test_prefix_agreement_by_text_and_by_ids():
    assert prefix_agreement(Answer(prompt=0, text="abcd"), Answer(prompt=0, text="abxx")) == 0.5
    assert prefix_agreement(Answer(prompt=0, text=""), Answer(prompt=0, text="")) == 1.0
    one, two = (
        Answer(prompt=0, text="a", token_ids=(1, 2)),
        Answer(prompt=0, text="b", token_ids=(1, 2, 3, 4)),
    )
    assert prefix_agreement(one, two) == 0.5


def test_answers_that_part_late_are_tolerated_when_the_baseline_does_so_too():
    def late(answer, size):
        return answer.model_copy(update={"text": answer.text[:40] + "z" * 9 + answer.text[49:]})

    def half(answer, size):
        return answer.model_copy(update={"text": answer.text[:30] + "!" + answer.text[31:]})

    assert compare([_sample(), _sample(late)], _sample(half)).ok


def test_other_words_at_one_batch_size_are_wrong_with_an_example():
    verdict = compare([_sample()], _at_64(text="completely different words about nothing at all"))
    assert not verdict.ok
    assert [(e.batch_size, e.detector) for e in verdict.evidence] == [(64, "agreement")]
    assert "completely different" in verdict.evidence[0].example
    assert "batch 64" in verdict.reason


def test_a_third_of_garbage_among_good_answers_is_wrong():
    def some(answer, size):
        return answer.model_copy(update={"text": "@" + answer.text}) if answer.prompt % 3 == 0 else answer

    assert (64, "agreement") in _found(_sample(some))


@pytest.mark.parametrize(
    ("text", "detector"),
    [
        ("", "empty"),
        ("\ufffd" * 30, "unreadable"),
        ("!" * 60, "repetition"),
        ("one by one " + "the sea the " * 12, "repetition"),
        ("one by " + "nan" * 20, "repetition"),
    ],
)
def test_signs_of_a_broken_kernel(text, detector):
    assert (64, detector) in _found(_at_64(text=text))


def test_log_probabilities_and_token_ids_are_looked_at():
    sure = _sample(logprobs=(-0.2, -0.3))
    assert _found(_sample(logprobs=(-0.25, -0.3)), sure) == []
    assert (1, "logprobs") in _found(_sample(logprobs=(-3.0, -2.0)), sure)
    assert (1, "not-a-number") in _found(_sample(logprobs=(None, -0.3)), sure)
    ids = _sample(token_ids=(5, 6, 7))
    assert _found(ids, ids, vocabulary=8) == []
    assert (1, "token-range") in _found(_sample(token_ids=(5, 6, 70)), ids, vocabulary=8)
    assert (1, "token-range") in _found(_sample(token_ids=(5, 6, -1)), ids)


def test_a_loop_that_the_baseline_has_too_is_no_evidence():
    looping = _sample(lambda a, size: a.model_copy(update={"text": "go on and " * 12}))
    assert compare([looping], looping).ok


def test_missing_answers_are_wrong():
    assert (64, "missing") in _found(_at_64(text="", error="TimeoutError: no time was left"))
    fewer = OutputSample(batches=_sample().batches[:2])
    assert _found(fewer) == [(64, "missing")]


def test_without_a_baseline_there_is_nothing_to_compare_with():
    with pytest.raises(ValueError, match="no baseline sample"):
        compare([], _sample())
