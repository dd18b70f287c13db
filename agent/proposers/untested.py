"""A fresh look at what is only believed: advice that was adopted in company, defaults that nobody questions.

Where the book is wrong for a machine, several of its pieces of advice tend to be. One launch takes them all
back; what it measures then tells the surrogate whether any of them deserves a look of its own.
"""

import math
from collections.abc import Iterator

from moeagent.agent.proposers.beliefs import Gain, interpolate
from moeagent.agent.proposers.book import Move
from moeagent.agent.proposers.candidate import Candidate, whole
from moeagent.agent.proposers.expression import UnknownFactError
from moeagent.agent.proposers.history import UNTESTED, value
from moeagent.agent.proposers.question import Question
from moeagent.memory.records import ConfigChange

FEWEST = 2
"""One thing alone is tried by its own move, or taken back by `undo_winners`."""
RISKY = 0.12
"""Advice that may crash a server with more than this chance is no small thing to move to and fro."""
STRUCTURE = ("memory", "batching", "parallelism", "experts")
"""Categories whose moves decide what fits and how the model is laid out: their effects are not small."""
UNKNOWN = Gain(0.0, 0.03)
"""What advice that nobody tested may do, before the surrogate has its word."""


def untested_advice(question: Question) -> Iterator[Candidate]:
    """Once in a campaign: everything together that was adopted and never tested apart, and contrary moves."""
    if any(hypothesis.move == UNTESTED for hypothesis in question.view.hypotheses):
        return
    believed = {knob for knob in _adopted_advice(question) if not _tested_apart(knob, question)}
    knobs = sorted(believed.difference(_needed(question)))
    contrary = [move for move in question.book.move if move.contrary and _applies(move, question)]
    if len(knobs) + len(contrary) < FEWEST:
        return
    child = question.base.apply(question.base.diff(question.view.baseline).only(knobs))
    for move in contrary:
        child = child.apply(_made(move))
    change = question.settle(question.base.diff(child))
    if change is None:
        return
    said = [f"take back {', '.join(knobs)}"] if knobs else []
    said += [move.statement[:1].lower() + move.statement[1:] for move in contrary]
    yield Candidate(
        move=UNTESTED,
        statement=f"Check what was only believed: {'; '.join(said)}",
        why="No launch tested any of it apart; where the book is wrong, none would have shown it.",
        source=" | ".join(["what this run adopted together with others", *(m.source for m in contrary)]),
        category="undo",
        change=change,
        gains={c: contrary_gain(contrary, c) for c in question.view.workload.ladder},
        untested=True,
    )


def _adopted_advice(question: Question) -> Iterator[str]:
    """Knobs that one small move of the book sets to what is in force, and the baseline does not."""
    baseline, now = question.view.baseline, question.base
    for move in question.book.move:
        pulled = {**move.set_flags, **move.set_env}
        if len(pulled) != 1 or move.remove or move.risk > RISKY or move.category in STRUCTURE:
            continue
        ((name, raw),) = pulled.items()
        try:
            advised = whole(question.spelling.declared(name), question.value(raw))
        except UnknownFactError:
            continue
        for knob in question.spelling.all(name):
            if value(now, knob) != value(baseline, knob) and str(value(now, knob)) == str(advised):
                yield knob


def _needed(question: Question) -> Iterator[str]:
    """Knobs that an adopted layout set, or found as it needs them: a part of it alone is another layout."""
    adopted = {
        move for trial in question.past.trials if trial.improved for move in trial.hypothesis.move.split("+")
    }
    for move in question.book.move:
        if move.id in adopted and move.category in STRUCTURE:
            yield from (k for name in (*move.set_flags, *move.set_env) for k in question.spelling.all(name))


def _tested_apart(knob: str, question: Question) -> bool:
    return any(
        trial.verdict.effects and trial.hypothesis.change.knobs() == (knob,) for trial in question.past.trials
    )


def _applies(move: Move, question: Question) -> bool:
    """Whether nothing and nobody speaks against the move: it must not cost the check of everything else."""
    change = question.settle(_made(move)) if question.holds(move.when) == 1 else None
    if change is None or question.past.of_move(move.id):
        return False
    return question.past.doubt(change, question.base.apply(change), move.id) > 0


def _made(move: Move) -> ConfigChange:
    return ConfigChange(set_flags=dict(move.set_flags), set_env=dict(move.set_env))


def contrary_moves(question: Question, change: ConfigChange) -> list[Move]:
    """The contrary moves that the change makes."""
    made = change.set_flags | change.set_env
    contrary = [move for move in question.book.move if move.contrary]
    return [move for move in contrary if (move.set_flags | move.set_env).items() <= made.items()]


def contrary_gain(moves: list[Move], concurrency: int) -> Gain:
    """What contrary moves say of themselves; the surrogate adds what the rest is believed to bring."""
    gains = [UNKNOWN, *(interpolate(move.effect, concurrency) for move in moves)]
    return Gain(sum(g.mean for g in gains), math.hypot(*(g.sd for g in gains)))
