"""The candidate's greedy answers against the baseline's, batch size by batch size.

Greedy answers are not bit-stable across batch sizes or even runs: sums are ordered differently, and after the
first differing token two right answers part. So the baseline is compared with itself too (its batch sizes
with each other, and with a second launch where there is one), and only a candidate that agrees much less than
that is called wrong: another kernel or number format moves the token where answers part, garbage parts at
once.
"""

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from moeagent.tools.output_check.detectors import (
    Detector,
    has_no_number,
    is_empty,
    is_looping,
    is_unreadable,
    out_of_range,
)
from moeagent.tools.output_check.sample import Answer, BatchSample, Evidence, OutputSample, OutputVerdict

AGREEMENT_KEPT = 0.4
"""Part of the baseline's mean prefix agreement with itself that the candidate must keep."""
AT_ONCE = 0.05
"""Two answers with a smaller prefix agreement part at once."""
AT_ONCE_SHARE = 0.2
"""Share of answers that part at once, beyond the baseline's own share, that is called wrong."""
LOGPROB_SLACK = 0.5
"""Nats by which the mean log-probability of the chosen tokens may fall below the baseline's."""
FAULTY_SHARE = 0.05
"""Share of answers with a sign of fault, beyond the baseline's own share, that is called wrong."""


def compare(
    baseline: Sequence[OutputSample], candidate: OutputSample, *, vocabulary: int | None = None
) -> OutputVerdict:
    """Wrong when a batch size is missing, agrees too little, or shows faults that the baseline does not.

    baseline: one sample, or better several launches' samples. vocabulary: number of token ids, where known.
    Raises ValueError without a baseline sample.
    """
    if not baseline:
        raise ValueError("no baseline sample to compare with: collect one from a baseline launch")
    usual = self_agreement(baseline)
    evidence: list[Evidence] = []
    for reference in baseline[0].batches:
        size = reference.batch_size
        found = candidate.at(size)
        if found is None or len(found.answers) < len(reference.answers):
            evidence.append(Evidence(batch_size=size, detector="missing", message="not all answered"))
            continue
        evidence += _signs(reference, found, vocabulary)
        evidence += _disagreement(reference, found, usual)
        evidence += _confidence(reference, found)
    return OutputVerdict(ok=not evidence, evidence=tuple(evidence))


class Agreement(NamedTuple):
    """How far two sets of answers to the same prompts go together."""

    mean: float
    """Mean prefix agreement, 0..1."""
    at_once: float
    """Share of prompts whose answers part at once, 0..1."""


def prefix_agreement(one: Answer, other: Answer) -> float:
    """Common beginning over the longer answer's length, 0..1; by token ids where both have them."""
    a: Sequence[int] | str = one.text
    b: Sequence[int] | str = other.text
    if one.token_ids is not None and other.token_ids is not None:
        a, b = one.token_ids, other.token_ids
    if a == b:
        return 1.0
    longest = max(len(a), len(b))
    same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return same / longest


def self_agreement(baseline: Sequence[OutputSample]) -> Agreement:
    """The worst agreement of the baseline with itself; perfect where it was sampled only once."""
    batches = [batch for sample in baseline for batch in sample.batches]
    found = [agreement(a, b) for a, b in combinations(batches, 2)]
    if not found:
        return Agreement(1.0, 0.0)
    return Agreement(min(a.mean for a in found), max(a.at_once for a in found))


def agreement(one: BatchSample, other: BatchSample) -> Agreement:
    """Over the prompts that both answered; none at all when there are no such prompts."""
    each = [prefix_agreement(a, b) for a, b in _pairs(one, other)]
    if not each:
        return Agreement(0.0, 1.0)
    return Agreement(fmean(each), fmean(x < AT_ONCE for x in each))


def _pairs(one: BatchSample, other: BatchSample) -> list[tuple[Answer, Answer]]:
    theirs = {a.prompt: a for a in other.answers if not a.error}
    return [(a, theirs[a.prompt]) for a in one.answers if not a.error and a.prompt in theirs]


def _disagreement(reference: BatchSample, found: BatchSample, usual: Agreement) -> list[Evidence]:
    now = agreement(reference, found)
    floor, ceiling = AGREEMENT_KEPT * usual.mean, usual.at_once + AT_ONCE_SHARE
    if now.mean >= floor and now.at_once <= ceiling:
        return []
    message = (
        f"{now.mean:.0%} of the answers as in the baseline (at least {floor:.0%} expected), "
        f"{now.at_once:.0%} differ from the start (at most {ceiling:.0%})"
    )
    size, example = found.batch_size, _worst(reference, found)
    return [Evidence(batch_size=size, detector="agreement", message=message, example=example)]


def _worst(reference: BatchSample, found: BatchSample) -> str:
    pairs = _pairs(reference, found)
    if not pairs:
        return ""
    a, b = min(pairs, key=lambda pair: prefix_agreement(*pair))
    return f"{a.text[:120]!r} became {b.text[:120]!r}"


def _confidence(reference: BatchSample, found: BatchSample) -> list[Evidence]:
    usual, now = _mean_logprob(reference), _mean_logprob(found)
    if usual is None or now is None or now >= usual - LOGPROB_SLACK:
        return []
    message = f"mean log-probability {now:.2f}, the baseline has {usual:.2f}"
    return [Evidence(batch_size=found.batch_size, detector="logprobs", message=message)]


def _mean_logprob(batch: BatchSample) -> float | None:
    values = [x for a in batch.answers for x in a.logprobs or () if x is not None]
    return fmean(values) if values else None


def _signs(reference: BatchSample, found: BatchSample, vocabulary: int | None) -> list[Evidence]:
    detectors: dict[str, Detector] = {
        "missing": lambda a: bool(a.error),
        "empty": lambda a: not a.error and is_empty(a),
        "unreadable": is_unreadable,
        "repetition": is_looping,
        "not-a-number": has_no_number,
        "token-range": lambda a: out_of_range(a, vocabulary),
    }
    found_by = ((name, _more_often(detect, reference, found)) for name, detect in detectors.items())
    return [
        Evidence(
            batch_size=found.batch_size,
            detector=name,
            message=f"{len(faulty)} of {len(found.answers)} answers: {name}",
            example=faulty[0].error or repr(faulty[0].text[:120]),
        )
        for name, faulty in found_by
        if faulty
    ]


def _more_often(detect: Detector, reference: BatchSample, found: BatchSample) -> list[Answer]:
    """The candidate's faulty answers, where they are more than the baseline's share allows."""
    usual = fmean(map(detect, reference.answers)) if reference.answers else 0.0
    faulty = [a for a in found.answers if detect(a)]
    return faulty if len(faulty) > (usual + FAULTY_SHARE) * len(found.answers) else []
