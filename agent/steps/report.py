"""Conclude the run."""

from moeagent.agent.loop import Loop
from moeagent.agent.policy import confirmation_of
from moeagent.agent.state import State
from moeagent.memory.ledger import Conclusion


def report(loop: Loop, state: State) -> State:
    """Write down how the campaign ended, what is best, and what fresh launches say of its gain."""
    stop = state.get("stop", "")
    incumbent = loop.ledger.incumbent
    confirmation = confirmation_of(loop)
    loop.decide(
        Conclusion(
            status=stop if stop == "awaiting approval" else "finished",
            reason=stop,
            best=incumbent.config if incumbent else None,
            best_hypothesis=incumbent.hypothesis if incumbent else None,
            confirmation=confirmation.status,
            confirmed_gain=confirmation.headline,
            confirmation_reason=confirmation.reason,
        )
    )
    return {}
