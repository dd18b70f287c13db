"""Ask for the next hypothesis, while the budget allows one."""

from moeagent.agent.loop import Loop
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.proposers.view import CampaignView
from moeagent.agent.spending import no_more_experiments
from moeagent.agent.state import State
from moeagent.memory.ledger import Limit


def propose(loop: Loop, state: State) -> State:
    """The next draft; without one the launches that are left go to the ideas that are open."""
    loop.world.clock()
    reason = no_more_experiments(loop)
    if reason:
        loop.course.ended = reason
        return {"next": "record"}
    view = loop.view()
    binding = binding_limit(loop, view)
    if binding is not None:
        loop.decide(binding)
    proposal = loop.proposer.propose(view)
    if proposal.note:
        loop.note("proposer", proposal.note)
    if not isinstance(proposal, Draft):
        loop.course.ended = proposal.reason
        return {"next": "record"}
    loop.draft = proposal
    return {"next": "vet"}


def binding_limit(loop: Loop, view: CampaignView) -> Limit | None:
    """What binds the incumbent most, by the measurements so far."""
    found = loop.playbook.limits(view)
    return Limit(name=found[0].name, evidence=found[0].evidence) if found else None
