"""Start the server and wait until it is ready, dead or hung."""

from moeagent.agent.events import StepBegan
from moeagent.agent.loop import Loop, OpenLaunch
from moeagent.agent.state import State
from moeagent.memory.records import LaunchOutcome

OUTCOMES = {
    "ready": LaunchOutcome.COMPLETED,
    "died": LaunchOutcome.DIED_STARTING,
    "hung": LaunchOutcome.HUNG_STARTING,
    "refused": LaunchOutcome.REFUSED,
}


def launch(loop: Loop, state: State) -> State:
    """One start of one server."""
    config = loop.configs[state["config"]]
    launch_id = f"L{len(loop.ledger.launches) + 1}"
    loop.open = OpenLaunch(launch_id, state.get("hypothesis"), config)
    loop.emit(StepBegan("launch", f"{launch_id} {state.get('hypothesis') or 'baseline'}"))
    report = loop.world.start(launch_id, config)
    loop.open.command = report.command
    loop.open.outcome = OUTCOMES[report.outcome]
    loop.open.why = report.reason
    if report.outcome != "ready":
        return {"next": "diagnose"}
    loop.open.ready_after_s = report.after_s
    loop.open.info = report.info
    loop.open.cmdline = report.cmdline
    return {"next": "measure"}
