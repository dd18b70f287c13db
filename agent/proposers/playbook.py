"""The playbook: name what binds, rank what could move it, propose the best. Needs no language model."""

from collections.abc import Iterable, Iterator

from moeagent.agent.proposers.beliefs import blend, excess_risk, predictor_sd
from moeagent.agent.proposers.book import Book, load_book
from moeagent.agent.proposers.bundle import bundle, screen
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.drafting import draft
from moeagent.agent.proposers.limits import Limit
from moeagent.agent.proposers.protocol import Nothing, Predictor, Proposal
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.ranking import Ranked, order, rank
from moeagent.agent.proposers.situation import limits_of
from moeagent.agent.proposers.sources import all_candidates
from moeagent.agent.proposers.spelling import Spelling
from moeagent.agent.proposers.surrogate import Surrogate
from moeagent.agent.proposers.suspicion import Suspicion
from moeagent.agent.proposers.view import CampaignView

WORTH_SHARE = 0.05
"""An idea is worth a launch when it promises this share of the smallest effect that counts."""


class Playbook:
    """A ranked, data-driven policy. Stateless: its decision depends on the view and the predictor alone."""

    name = "playbook"

    def __init__(self, predictor: Predictor | None = None, book: Book | None = None) -> None:
        self._predictor = predictor
        self._book = book

    def propose(self, view: CampaignView) -> Proposal:
        """The best idea, or Nothing when none is worth its launch."""
        ranked = self.ranking(view)
        worth = view.goal.min_effect * WORTH_SHARE
        if not ranked:
            return Nothing(reason="ideas exhausted: every move that this machine and model allow was tried")
        best = ranked[0]
        if best.score < worth:
            return Nothing(
                reason=f"ideas exhausted: the best that is left ({best.candidate.statement}) promises "
                f"{best.score:.2%} per launch, less than {worth:.2%}"
            )
        return draft(best, view, self.limits(view))

    def limits(self, view: CampaignView) -> tuple[Limit, ...]:
        """What binds the incumbent, the strongest first."""
        return self.question(view).limits

    def ranking(self, view: CampaignView) -> tuple[Ranked, ...]:
        """Every candidate that is left, the best first."""
        question = self.question(view)
        candidates = all_candidates(question)
        if self._predictor is not None:
            candidates = _informed(candidates, view, self._predictor)
        surrogate = Surrogate(question)
        suspicion = Suspicion(question)
        suspected = (_suspected(candidate, view, suspicion) for candidate in candidates)
        ranked = rank(map(surrogate.corrected, suspected), question)
        together = (bundle(ranked, question), screen(ranked, question))
        more = {str(x.candidate.change): x for x in reversed(together) if x is not None}
        return tuple(sorted((*more.values(), *ranked), key=order))

    def question(self, view: CampaignView) -> Question:
        """The view with what is derived from it: limits, history, spelling."""
        book = self._book or load_book(view.incumbent.engine)
        spelling = Spelling(view.engine, book.aliases, book.renamed)
        return Question(view, book, limits_of(view, book, spelling), spelling)


def _informed(
    candidates: Iterable[Candidate], view: CampaignView, predictor: Predictor
) -> Iterator[Candidate]:
    """The candidates with the predictor's word on effect and risk."""
    overall, parent = predictor_sd(view.verdicts), view.incumbent
    known, _ = predictor.risk(parent)
    for candidate in candidates:
        error_sd = max(overall, predictor_sd(view.verdicts_in(candidate.category)))
        child = parent.apply(candidate.change)
        unsure = max(error_sd, candidate.unsure)
        effects = predictor.predict_effects(parent, child)
        gains = blend(candidate.gains, effects, unsure, guessed=candidate.guessed)
        risk, why = predictor.risk(child)
        excess = excess_risk(risk, known)
        if excess > candidate.risk:
            candidate = candidate._replace(risk=excess, risk_why=why)
        yield candidate._replace(gains=gains)


def _suspected(candidate: Candidate, view: CampaignView, suspicion: Suspicion) -> Candidate:
    """The candidate with the risk that deaths in this run speak of."""
    risk = suspicion.risk(view.incumbent, candidate.change)
    if risk <= candidate.risk:
        return candidate
    return candidate._replace(risk=risk, risk_why="a server died in this run with a part of this change")
