"""Act on the verdict: a new incumbent, the binding limit, and whether the campaign goes on."""

from moeagent.agent.limits import launches_exhausted
from moeagent.agent.loop import Loop
from moeagent.agent.state import State


def record(loop: Loop, state: State) -> State:
    """Keep what the verdict changes; decide where to go."""
    reason = launches_exhausted(loop.settings.limits, loop.ledger, loop.world.active_s)
    return {"next": "report", "stop": reason} if reason else {"next": "propose"}
