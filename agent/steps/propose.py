"""Ask for the next hypothesis, while the budget allows one."""

from moeagent.agent.limits import experiments_exhausted
from moeagent.agent.loop import Loop
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.state import State


def propose(loop: Loop, state: State) -> State:
    """The next draft, or the reason to stop."""
    reason = experiments_exhausted(loop.settings.limits, loop.ledger, loop.world.clock())
    if reason:
        return {"next": "report", "stop": reason}
    proposal = loop.proposer.propose(loop.view())
    if proposal.note:
        loop.note("proposer", proposal.note)
    if not isinstance(proposal, Draft):
        return {"next": "report", "stop": proposal.reason}
    loop.draft = proposal
    return {"next": "vet"}
