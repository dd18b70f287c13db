"""The playbook: name what binds, rank what could move it, propose the best. Needs no language model."""

from moeagent.agent.proposers.beliefs import blend, predictor_sd
from moeagent.agent.proposers.book import Book, load_book
from moeagent.agent.proposers.candidate import Candidate
from moeagent.agent.proposers.drafting import draft
from moeagent.agent.proposers.limits import Limit
from moeagent.agent.proposers.protocol import Nothing, Predictor, Proposal
from moeagent.agent.proposers.question import Question
from moeagent.agent.proposers.ranking import Ranked, rank
from moeagent.agent.proposers.situation import limits_of
from moeagent.agent.proposers.sources import all_candidates
from moeagent.agent.proposers.spelling import Spelling
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
        risk_why = (
            self._predictor.risk(view.incumbent.apply(best.candidate.change))[1] if self._predictor else ""
        )
        return draft(best, view, self.limits(view), risk_why)

    def limits(self, view: CampaignView) -> tuple[Limit, ...]:
        """What binds the incumbent, the strongest first."""
        return self.question(view).limits

    def ranking(self, view: CampaignView) -> tuple[Ranked, ...]:
        """Every candidate that is left, the best first."""
        question = self.question(view)
        error_sd = predictor_sd(view.verdicts)
        candidates = (self._informed(c, view, error_sd) for c in all_candidates(question))
        return rank(candidates, question)

    def question(self, view: CampaignView) -> Question:
        """The view with what is derived from it: limits, history, spelling."""
        book = self._book or load_book(view.incumbent.engine)
        spelling = Spelling(view.engine, book.aliases, book.renamed)
        return Question(view, book, limits_of(view, book, spelling), spelling)

    def _informed(self, candidate: Candidate, view: CampaignView, error_sd: float) -> Candidate:
        """The candidate with the predictor's word on effect and risk."""
        if self._predictor is None:
            return candidate
        child = view.incumbent.apply(candidate.change)
        effects = self._predictor.predict_effects(view.incumbent, child)
        risk = max(candidate.risk, self._predictor.risk(child)[0])
        return candidate._replace(gains=blend(candidate.gains, effects, error_sd), risk=min(risk, 1.0))
