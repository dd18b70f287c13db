"""What this version of the loop would decide, kind by kind, on the state that was recorded before a decision.

Each function takes that state and the recorded decision and returns the decision of today, or None where
there would be none now.
"""

from collections.abc import Callable
from typing import Any

from moeagent.agent.judge import Judgement
from moeagent.agent.loop import OpenLaunch, boundary
from moeagent.agent.own_ideas import OwnIdeasFirst
from moeagent.agent.policy import confirmation_of, judgement_of, launches_left
from moeagent.agent.proposers.protocol import Draft, Nothing, Proposal
from moeagent.agent.recorded_state import RecordedLaunch, RecordedState
from moeagent.agent.second_opinion import is_unsure
from moeagent.agent.spending import no_more_launches
from moeagent.agent.steps.baseline import starting_point
from moeagent.agent.steps.diagnose import cause_in
from moeagent.agent.steps.launch import OUTCOMES
from moeagent.agent.steps.pivot import remedy
from moeagent.agent.steps.propose import binding_limit
from moeagent.agent.steps.vet import vetted
from moeagent.memory.ledger import CampaignFacts, Conclusion, Incumbent, Limit, RejectedIdea
from moeagent.memory.records import (
    Diagnosis,
    Hypothesis,
    Launch,
    LaunchOutcome,
    Pivot,
    Record,
    Verdict,
    VerdictKind,
)
from moeagent.tools.diagnosis.catalogue import Catalogue
from moeagent.tools.engines.effective import in_force


class NotDecidedHereError(Exception):
    """The outside world decided, or the tape does not hold what the decision rested on; the message says."""


class NoDecisionError(Exception):
    """There would be no such decision now; the message says why."""


class SecondThoughts:
    """The decisions of today; signatures for the diagnosis may be the reader's own."""

    def __init__(self, state: RecordedState, catalogue: Catalogue | None = None) -> None:
        self._state, self._loop = state, state.loop
        self._catalogue = catalogue
        self._by_kind: dict[type[Record], Callable[[Any], Record]] = {
            CampaignFacts: self._facts,
            Incumbent: self._incumbent,
            Limit: self._limit,
            Hypothesis: self._idea,
            RejectedIdea: self._idea,
            Launch: self._launch,
            Pivot: self._pivot,
            Verdict: self._verdict,
            Conclusion: self._conclusion,
        }

    def on(self, recorded: Record) -> Record:
        """The decision of today. Raises NotDecidedHereError, or NoDecisionError where there is none now."""
        decide = self._by_kind.get(type(recorded))
        if decide is None:
            raise NotDecidedHereError("it tells what happened, or what somebody said")
        needs_survey = not isinstance(recorded, CampaignFacts | Launch)
        if needs_survey and self._loop.facts is None:
            raise NotDecidedHereError(str(self._state.surveyed))
        return decide(recorded)

    def omitted_pivot(self) -> Pivot | None:
        """The remedy that would be tried after the last launch, for a tape that goes on without one."""
        failed = self._state.last
        if failed is None or self._loop.facts is None:
            return None
        if no_more_launches(self._loop):
            return None
        return remedy(self._loop, {"hypothesis": failed.hypothesis, "attempt": self._state.attempt}, failed)

    def omitted_verdict(self) -> Verdict | None:
        """The verdict on the idea that was launched last, for a tape that goes on without one.

        After a launch of the incumbent it is the one idea that is open; of several nobody can tell which.
        """
        last, ideas = self._state.last, self._state.open_ideas
        if last is None or self._loop.facts is None:
            return None
        if last.hypothesis is None:
            return self._judged(ideas[0]).verdict if len(ideas) == 1 else None
        if last.hypothesis not in ideas or last.config.id == self._loop.incumbent.id:
            return None
        return self._judged(last.hypothesis).verdict

    def _judged(self, idea: str) -> Judgement:
        return judgement_of(self._loop, idea, self._left())

    def _facts(self, recorded: CampaignFacts) -> Record:
        found = self._state.surveyed
        if isinstance(found, CampaignFacts):
            return found
        if self._loop.facts is None:
            raise NotDecidedHereError(found)
        raise NoDecisionError(f"the survey would end the run: {found}")

    def _incumbent(self, recorded: Incumbent) -> Record:
        loop = self._loop
        if not loop.ledger.incumbents:
            return Incumbent(config=starting_point(loop), hypothesis=None)
        if recorded.hypothesis is None:
            confirmation = confirmation_of(loop)
            if confirmation.status == "refuted":
                return Incumbent(config=loop.baseline, hypothesis=None)
            raise NoDecisionError(f"the confirmation is {confirmation.status}: {confirmation.reason}")
        verdict = loop.ledger.verdict(recorded.hypothesis)
        if verdict is None or verdict.kind is not VerdictKind.IMPROVED:
            raise NotDecidedHereError("it was built on before its gain was proven")
        return Incumbent(config=loop.course.candidates[recorded.hypothesis], hypothesis=recorded.hypothesis)

    def _limit(self, recorded: Limit) -> Record:
        found = binding_limit(self._loop, self._loop.view())
        if found is None:
            raise NoDecisionError("no limit is seen to bind")
        return found

    def _idea(self, recorded: Hypothesis | RejectedIdea) -> Record:
        proposal = self._proposal(recorded)
        if isinstance(proposal, Nothing):
            raise NoDecisionError(proposal.reason)
        return vetted(self._loop, proposal)

    def _proposal(self, recorded: Hypothesis | RejectedIdea) -> Proposal:
        """From the playbook or the engineer's list anew; another's idea as it was."""
        loop = self._loop
        if recorded.source == "playbook":
            return loop.playbook.propose(loop.view())
        if recorded.source == "user" and loop.settings.idea:
            return OwnIdeasFirst(loop.settings.idea, loop.playbook, loop.predictor).propose(loop.view())
        fields = recorded.model_dump(exclude={"id"})
        if isinstance(recorded, RejectedIdea):
            fields |= {"reason": "", "refuted_by": "", "parent": loop.incumbent.id}
        return Draft.model_validate(fields)

    def _launch(self, recorded: Launch) -> Record:
        """What code reads out of the server's answers and its log; rungs are the world's."""
        told, text = self._state.launches.get(recorded.id), self._loop.world.text(recorded.log)
        outcome = _outcome(told) if told else recorded.outcome
        effective = recorded.effective
        if told:
            info = told.start.info if outcome is not LaunchOutcome.REFUSED else None
            effective = in_force(self._loop.engine, info, text, told.start.cmdline)
        draft = OpenLaunch(recorded.id, recorded.hypothesis, recorded.config, outcome=outcome)
        draft.rungs = list(recorded.rungs)
        return recorded.model_copy(
            update={
                "outcome": outcome,
                "effective": effective,
                "memory": self._loop.engine.memory(text),
                "boundary": boundary(draft),
                "diagnosis": self._diagnosis(recorded, outcome, text),
            }
        )

    def _diagnosis(self, recorded: Launch, outcome: LaunchOutcome, text: str) -> Diagnosis | None:
        if outcome is LaunchOutcome.COMPLETED:
            return None
        found = cause_in(text, self._loop.engine.name, outcome, self._catalogue)
        by_model = recorded.diagnosis is not None and recorded.diagnosis.by == "model"
        return recorded.diagnosis if by_model and found is not None and is_unsure(found) else found

    def _pivot(self, recorded: Pivot) -> Record:
        found = self.omitted_pivot()
        if found is None:
            raise NoDecisionError("no remedy would be tried")
        return found

    def _verdict(self, recorded: Verdict) -> Record:
        said = [each for each in self._loop.ledger.approvals if each.hypothesis == recorded.hypothesis]
        if said and said[-1].refused:
            raise NotDecidedHereError(f"it was {said[-1].answer} by {said[-1].by}")
        if recorded.hypothesis not in self._loop.course.candidates:
            raise NotDecidedHereError("the tape holds no launch of it")
        found = self._judged(recorded.hypothesis)
        if found.verdict is None:
            raise NoDecisionError(f"it would stay open: {found.assessment.reason}")
        return found.verdict

    def _left(self) -> int:
        """Launches that ideas may still have; none when the campaign concludes."""
        concluding = self._state.judging_is_over or not self._loop.settings.limits.prove_each_step
        return 0 if concluding else launches_left(self._loop)

    def _conclusion(self, recorded: Conclusion) -> Record:
        """Status and reason tell the course of the run; what fresh launches say of its best is decided."""
        incumbent, found = self._loop.ledger.incumbent, confirmation_of(self._loop)
        return recorded.model_copy(
            update={
                "best": incumbent.config if incumbent else None,
                "best_hypothesis": incumbent.hypothesis if incumbent else None,
                "confirmation": found.status,
                "confirmed_gain": found.headline,
                "confirmation_reason": found.reason,
            }
        )


def _outcome(told: RecordedLaunch) -> LaunchOutcome:
    """How the launch ended, by what the world said."""
    if told.start.outcome != "ready":
        return OUTCOMES[told.start.outcome]
    last = told.loads[-1] if told.loads else None
    died = told.unanswered or (last is not None and (not last.alive or last.rung.completed == 0))
    return LaunchOutcome.DIED_SERVING if died else LaunchOutcome.COMPLETED
