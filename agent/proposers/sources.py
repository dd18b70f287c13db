"""Where candidates come from: the book's moves, steps, combinations, undoing, earlier runs, exploration."""

from collections.abc import Iterator

from moeagent.agent.proposers.beliefs import interpolate
from moeagent.agent.proposers.book import Move
from moeagent.agent.proposers.candidate import Candidate, whole
from moeagent.agent.proposers.declared import declared_knobs
from moeagent.agent.proposers.expression import UnknownFactError
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.reuse import combinations_of_near_winners, known_winners, undo_winners
from moeagent.agent.proposers.steps import knob_steps
from moeagent.agent.proposers.untested import untested_advice
from moeagent.memory.records import ConfigChange


def all_candidates(question: Question) -> Iterator[Candidate]:
    """Every candidate of every source, unranked, what history rules out left away."""
    for source in _SOURCES:
        for candidate in source(question):
            child = question.view.incumbent.apply(candidate.change)
            doubt = candidate.doubt * question.past.doubt(candidate.change, child, candidate.move)
            if doubt > 0:
                yield candidate._replace(doubt=doubt)


def book_moves(question: Question) -> Iterator[Candidate]:
    """Moves whose preconditions hold, or may hold."""
    for move in question.book.move:
        doubt = question.holds(move.when)
        change = _change_of(move, question) if doubt else None
        if change is None:
            continue
        relevance = question.relevance(move.limits)
        ladder = question.view.workload.ladder
        yield Candidate(
            move=move.id,
            statement=move.statement,
            why=move.why,
            source=move.source,
            category=move.category,
            change=change,
            gains={c: interpolate(move.effect, c).times(relevance) for c in ladder},
            limits=move.limits,
            cost=move.cost,
            risk=move.risk,
            doubt=doubt,
            unsure=move.unsure,
            together=move.together,
        )


def _change_of(move: Move, question: Question) -> ConfigChange | None:
    try:
        flags = {flag: question.value(raw) for flag, raw in move.set_flags.items()}
        env = {name: str(question.value(raw)) for name, raw in move.set_env.items()}
    except UnknownFactError:
        return None
    flags = {flag: whole(question.spelling.declared(flag), value) for flag, value in flags.items()}
    removed = {"remove_flags": move.removed_flags, "remove_env": move.removed_env}
    return question.settle(ConfigChange(set_flags=flags, set_env=env, **removed))


_SOURCES = (
    book_moves,
    knob_steps,
    combinations_of_near_winners,
    undo_winners,
    untested_advice,
    known_winners,
    declared_knobs,
)
