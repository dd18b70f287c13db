"""A language model with the playbook behind it: no run waits long for a model, nor pays for its whims."""

from moeagent.agent.proposers.model import ModelProposer, NoIdeaError
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Proposal
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.errors import ModelEndpointError
from moeagent.memory.records import VerdictKind

MAX_BARREN_TURNS = 3
"""Turns in a row without an idea after which the model is not asked again in this run."""

PATIENCE = 3
"""Ideas in a row that did not pay before the playbook has turns in between, where launches are many."""
SHARE = 8
"""In a short run each idea that does not pay may cost this part of the launches at most."""


class FallbackProposer:
    """Gives the turn to the model, and to the playbook when the model fails or its ideas do not pay."""

    def __init__(self, model: ModelProposer, playbook: Playbook) -> None:
        self.model, self.playbook = model, playbook
        self.closed = ""
        """Why the model is not asked any more in this run; empty while it is."""
        self._barren = 0

    @property
    def name(self) -> str:
        """Both, for the log."""
        return f"{self.model.name}, then {self.playbook.name}"

    def propose(self, view: CampaignView) -> Proposal:
        """The model's hypothesis, or the playbook's with a note that says why it has the turn."""
        why = self.closed or _rest_of_the_model(view)
        if not why:
            try:
                draft = self.model.propose(view)
            except ModelEndpointError as error:
                why = str(error)
            except NoIdeaError as error:
                why = self._barren_turn(str(error))
            else:
                self._barren = 0
                return draft
        proposal = self.playbook.propose(view)
        return proposal.model_copy(update={"note": f"the playbook has the turn: {why}"})

    def _barren_turn(self, reason: str) -> str:
        self._barren += 1
        if self._barren >= MAX_BARREN_TURNS:
            self.closed = f"{reason} ({self._barren} turns in a row without an idea)"
        return self.closed or reason


def _rest_of_the_model(view: CampaignView) -> str:
    """Why the model sits this turn out: after some ideas that did not pay the playbook's turns double."""
    failures, waited = _trailing_failures(view)
    patience = _patience(view)
    owed = 2 ** (failures - patience) if failures >= patience else 0
    if waited >= owed:
        return ""
    ideas = "last idea" if failures == 1 else f"last {failures} ideas"
    return f"the model's {ideas} did not pay; its next turn is in {owed - waited}"


def _patience(view: CampaignView) -> int:
    """Ideas that may fail in a row."""
    if view.budget.launches is None:
        return PATIENCE
    whole = view.budget.launches + len(view.launches)
    return min(PATIENCE, max(1, whole // SHARE))


def _trailing_failures(view: CampaignView) -> tuple[int, int]:
    """The model's ideas since its last success, and the other turns since its last idea."""
    failures = waited = 0
    for hypothesis in view.hypotheses:
        verdict = view.verdict(hypothesis.id)
        if hypothesis.source != "model":
            waited += 1
        elif verdict is not None:
            paid = verdict.kind is VerdictKind.IMPROVED or hypothesis.id in view.adopted
            failures = 0 if paid else failures + 1
            waited = 0
    return failures, waited
