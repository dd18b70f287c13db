"""Running the graph to its end, and past it when a resumed run may spend more."""

from collections.abc import Mapping

from moeagent.agent import steps
from moeagent.agent.graph import Step, build, recursion_limit
from moeagent.agent.loop import Loop
from moeagent.agent.settings import CampaignSettings
from moeagent.agent.state import State
from moeagent.memory.errors import Interrupted, MoeagentError, TapeError
from moeagent.memory.tape.lines import Json


def drive(loop: Loop, nodes: Mapping[str, Step] = steps.NODES) -> None:
    """Run the campaign to its conclusion.

    Whatever ends it, the server that was started is stopped and the tape says how it ended. Raises the
    MoeagentError that ended it.
    """
    loop.tape.on_amend = lambda amend: amend_settings(loop, amend)
    try:
        _invoke(loop, nodes)
    except Interrupted as interrupted:
        loop.world.emergency_stop()
        loop.tape.mark("stopped", str(interrupted))
        raise
    except TapeError:
        loop.world.emergency_stop()
        raise
    except MoeagentError as error:
        loop.world.emergency_stop()
        loop.tape.mark("failed", str(error))
        raise


def _invoke(loop: Loop, nodes: Mapping[str, Step]) -> None:
    graph = build(loop, nodes)
    state: State = {}
    while True:
        graph.invoke(state, config={"recursion_limit": recursion_limit(loop.settings.limits)})
        if not loop.tape.waits_for_more():
            return
        loop.course.ended, loop.course.confirming = "", None
        state = {"next": "propose", "phase": "explore"}


def amend_settings(loop: Loop, amend: Json) -> None:
    """From here on the run has these limits: a resume may raise them."""
    if amend:
        merged = loop.settings.model_dump(mode="json")
        for section, values in amend.items():
            merged[section] = {**merged[section], **values}
        loop.settings = CampaignSettings(**merged)
