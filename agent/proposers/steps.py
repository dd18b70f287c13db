"""Walks numeric knobs from the best configuration: on where it paid, not again where it did not."""

from collections.abc import Iterator

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.book import Step
from moeagent.agent.proposers.candidate import Candidate, whole
from moeagent.agent.proposers.expression import UnknownFactError
from moeagent.agent.proposers.history import NOTICEABLE, SECOND_LOOK_DOUBT
from moeagent.agent.proposers.question import Question
from moeagent.memory.records import ConfigChange

_KEEP = 0.4
"""Share of the last step's gain that the next step in the same direction is expected to bring."""


def knob_steps(question: Question) -> Iterator[Candidate]:
    """One step up and one step down for every numeric knob whose value in force is known."""
    for step in question.book.step:
        for up in (True, False):
            candidate = _step(step, up, question)
            if candidate is not None:
                yield candidate


def _step(step: Step, up: bool, question: Question) -> Candidate | None:
    now = question.number_in_force(step.flag)
    target = None if now is None else _next_value(step, now, up, question)
    if now is None or target is None:
        return None
    try:
        flags = {step.flag: target, **{f: question.value(raw, value=target) for f, raw in step.also.items()}}
    except UnknownFactError:
        return None
    change = question.settle(
        ConfigChange(set_flags={f: whole(question.spelling.declared(f), v) for f, v in flags.items()})
    )
    if change is None:
        return None
    gain, doubt, guessed = _step_gain(step, up, question)
    return Candidate(
        move=f"step:{step.flag}:{'up' if up else 'down'}",
        statement=f"{'Raise' if up else 'Lower'} {step.flag} from {now:g} to {target:g}",
        why=f"A step {'up' if up else 'down'} from the best configuration: {step.source}.",
        source=step.source,
        category=step.category,
        change=change,
        gains=dict.fromkeys(question.view.workload.ladder, gain),
        limits=step.up if up else step.down,
        risk=step.risk_up if up else step.risk_down,
        doubt=doubt,
        guessed=guessed,
    )


def _next_value(step: Step, now: float, up: bool, question: Question) -> int | float | None:
    whole = isinstance(now, int)
    raw = (
        (now * step.by if up else now / step.by)
        if step.scale == "times"
        else now + (step.by if up else -step.by)
    )
    low, high = question.number(step.low), question.number(step.high)
    if high is not None:
        raw = min(raw, high)
    if low is not None and not up:
        raw = max(raw, low)
    target = round(raw) if whole else round(raw, 3)
    return target if (target > now if up else target < now) else None


def _step_gain(step: Step, up: bool, question: Question) -> tuple[Gain, float, bool]:
    """What the step may bring, the chance factor of its history, and whether that is but a guess."""
    relevance = question.relevance(step.up if up else step.down) if (step.up if up else step.down) else 0.1
    guess = Gain(step.gain * (relevance - 0.5) / 2, step.gain * (0.3 + 0.5 * relevance))
    gain, doubt = guess, 1.0
    own = {name for flag in (step.flag, *step.also) for name in question.spelling.all(flag)}
    for trial, before, after in question.past.walks(step.flag):
        if isinstance(before, str) or isinstance(after, str) or before == after:
            continue
        if not own.issuperset(trial.hypothesis.change.knobs()):
            continue  # what several levers brought together is no step's gain
        same_way = (after > before) is up
        if trial.improved and trial.effect > NOTICEABLE:
            kept = _KEEP * trial.effect
            gain, doubt = (Gain(kept, max(kept, 0.01)), 1.0) if same_way else (gain, SECOND_LOOK_DOUBT)
        elif same_way:
            doubt *= SECOND_LOOK_DOUBT
    return gain, doubt, gain is guess
