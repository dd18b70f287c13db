"""Conclude the run."""

from moeagent.agent.loop import Loop
from moeagent.agent.state import State
from moeagent.memory.ledger import Conclusion


def report(loop: Loop, state: State) -> State:
    """Write down how the campaign ended and what is best."""
    stop = state.get("stop", "")
    incumbent = loop.ledger.incumbent
    loop.decide(
        Conclusion(
            status="awaiting approval" if stop == "awaiting approval" else "finished",
            reason=stop,
            best=incumbent.config if incumbent else None,
            best_hypothesis=incumbent.hypothesis if incumbent else None,
        )
    )
    return {}
