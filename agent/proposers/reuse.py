"""Candidates from what was measured before: combinations, winners to take back, winners of earlier runs."""

from collections.abc import Iterator
from itertools import combinations

from moeagent.agent.proposers.beliefs import Gain
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.history import Trial
from moeagent.agent.proposers.question import Question
from moeagent.memory.records import ConfigChange, VerdictKind

BLAME = 0.3
"""Part of a bundle's shortfall that its lesser parts are expected to have caused by harming."""
UNDO_SD = 0.015
"""Undoing brings back what a winner measured, give or take this: it was adopted because it paid."""
NEAR_WINNER = 0.005
"""A measured effect above this, too small to be proven alone, is worth a place in a combination."""


def combinations_of_near_winners(question: Question) -> Iterator[Candidate]:
    """Near winners together: each too small to be proven, perhaps not their sum."""
    near = [t for t in question.past.trials if _is_near(t, question)]
    for size in range(len(near), 1, -1):
        for group in combinations(near, size):
            candidate = _combined(group, question)
            if candidate is not None:
                yield candidate
                return


def _is_near(trial: Trial, question: Question) -> bool:
    adopted = question.view.incumbent.apply(trial.hypothesis.change) == question.view.incumbent
    kind = trial.verdict.kind
    open_ended = kind in (VerdictKind.NEUTRAL, VerdictKind.INCONCLUSIVE, VerdictKind.IMPROVED)
    return open_ended and trial.effect > NEAR_WINNER and not adopted


def _combined(group: tuple[Trial, ...], question: Question) -> Candidate | None:
    knobs = [k for t in group for k in t.hypothesis.change.knobs()]
    if len(knobs) != len(set(knobs)):
        return None
    child = question.view.incumbent
    for trial in group:
        child = child.apply(trial.hypothesis.change)
    change = question.settle(question.view.incumbent.diff(child))
    if change is None:
        return None
    total = sum(t.effect for t in group)
    ids = ", ".join(t.hypothesis.id for t in group)
    return Candidate(
        move="combine",
        statement=f"Combine {ids}: each a little better, none proven alone",
        why=f"Their measured effects add up to {total:+.1%}.",
        source=f"verdicts of {ids} in this run",
        category="combination",
        change=change,
        # Small effects picked because they came out positive shrink when measured again.
        gains={c: Gain(total / 2, max(total / 2, 0.01)) for c in question.view.workload.ladder},
        risk=max(t.hypothesis.risk for t in group),
    )


def undo_winners(question: Question) -> Iterator[Candidate]:
    """Take back winners that later winners may have made useless, and single parts of a bundle that won."""
    winners = [t for t in question.past.trials if t.improved]
    for trial in winners[:-1]:
        yield from _taken_back(trial, trial.hypothesis.statement, "", -trial.effect / 2, question)
    for trial in winners:
        yield from _all_but_the_first(trial, question)
        for part in trial.hypothesis.move.split("+") if "+" in trial.hypothesis.move else ():
            yield from _taken_back(trial, part, part, 0.0, question)


def _taken_back(
    trial: Trial, what: str, part: str, expected: float, question: Question
) -> Iterator[Candidate]:
    if question.base.apply(trial.hypothesis.change) != question.base:
        return
    back = _only(trial.child.diff(trial.parent), part, question) if part else trial.child.diff(trial.parent)
    change = question.settle(back)
    if change is not None:
        yield Candidate(
            move=f"undo:{trial.hypothesis.id}{':' if part else ''}{part}",
            statement=f"Take back {what} of {trial.hypothesis.id}",
            why="It was adopted with others; alone it may cost more than it brings."
            if part
            else "It paid before later changes moved the limit that it moved.",
            source=f"verdict of {trial.hypothesis.id} in this run",
            category="undo",
            change=change,
            gains=dict.fromkeys(question.view.workload.ladder, Gain(expected, UNDO_SD)),
        )


def _all_but_the_first(trial: Trial, question: Question) -> Iterator[Candidate]:
    """Where a bundle brought less than it promised, a part of it harms: its best part is tried alone."""
    first, *others = trial.hypothesis.move.split("+")
    shortfall = _shortfall(trial)
    if not others or shortfall < question.view.goal.min_effect:
        return
    if question.base.apply(trial.hypothesis.change) != question.base:
        return
    change = question.settle(_only(trial.child.diff(trial.parent), "+".join(others), question))
    if change is not None:
        yield Candidate(
            move=f"undo:{trial.hypothesis.id}:all-but-{first}",
            statement=f"Take back everything of {trial.hypothesis.id} but {first}",
            why=f"Together they brought {shortfall:.1%} less than predicted: one of them may harm.",
            source=f"verdict of {trial.hypothesis.id} in this run",
            category="undo",
            change=change,
            gains=dict.fromkeys(
                question.view.workload.ladder, Gain(shortfall * BLAME, UNDO_SD + shortfall / 2)
            ),
        )


def _shortfall(trial: Trial) -> float:
    """By how much the measured effect at the highest rung fell short of the predicted one."""
    predicted = max(trial.hypothesis.predicted, key=lambda p: p.concurrency, default=None)
    return predicted.effect - trial.effect if predicted and trial.verdict.effects else 0.0


def _only(change: ConfigChange, parts: str, question: Question) -> ConfigChange:
    """What of the change belongs to these moves of the book, joined by +."""
    moves = [m for m in question.book.move if m.id in parts.split("+")]
    touched = [name for m in moves for name in (*m.set_flags, *m.removed_flags)]
    flags = {spelling for flag in touched for spelling in question.spelling.all(flag)}
    return change.only(flags | {name for m in moves for name in (*m.set_env, *m.removed_env)})


def known_winners(question: Question) -> Iterator[Candidate]:
    """What paid in an earlier run whose scope matches."""
    for finding in question.view.priors:
        if finding.kind is not VerdictKind.IMPROVED:
            continue
        change = question.settle(finding.change)
        if change is not None:
            effect = finding.effect if finding.effect is not None else 0.05
            yield Candidate(
                move=f"known:{finding.run}",
                statement=f"Repeat what paid in run {finding.run}: {', '.join(change.knobs())}",
                why=finding.reason,
                source=f"run {finding.run}, {finding.scope}",
                category="memory of earlier runs",
                change=change,
                gains={
                    c: Gain(effect * finding.weight, max(effect * 0.5, 0.02))
                    for c in question.view.workload.ladder
                },
                prior=f"run {finding.run} ({finding.closeness or finding.match + ' match'}: {finding.scope})",
                from_run=finding.run,
            )
