"""Conclude the run."""

from moeagent.agent.approval.answers import AWAITING
from moeagent.agent.loop import Loop
from moeagent.agent.policy import confirmation_of
from moeagent.agent.state import State
from moeagent.memory.ledger import Conclusion


def report(loop: Loop, state: State) -> State:
    """Write down how the campaign ended, what is best, and what fresh launches say of its gain."""
    stop = state.get("stop", "")
    incumbent = loop.ledger.incumbent
    confirmation = confirmation_of(loop)
    waiting = loop.ledger.approvals[-1] if stop == AWAITING else None
    loop.decide(
        Conclusion(
            status=AWAITING if waiting else "finished",
            reason=f"nobody answered for {waiting.hypothesis}" if waiting else stop,
            best=incumbent.config if incumbent else None,
            best_hypothesis=incumbent.hypothesis if incumbent else None,
            confirmation=confirmation.status,
            confirmed_gain=confirmation.headline,
            confirmation_reason=confirmation.reason,
        )
    )
    return {}
