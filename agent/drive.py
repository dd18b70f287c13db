"""Running the graph to its end, and past it when a resumed run may spend more."""

from collections.abc import Mapping

from moeagent.agent import steps
from moeagent.agent.approval.answers import awaited
from moeagent.agent.events import Progress
from moeagent.agent.graph import Step, build, recursion_limit
from moeagent.agent.loop import Loop
from moeagent.agent.proposing import renew_model, seat_proposer
from moeagent.agent.settings import CampaignSettings
from moeagent.agent.state import State
from moeagent.memory.errors import Interrupted, MoeagentError, TapeError
from moeagent.memory.tape.lines import Json

PROPOSING = frozenset(("llm", "prompt", "idea"))
"""Settings that say who proposes, and how."""


def drive(loop: Loop, nodes: Mapping[str, Step] = steps.NODES) -> None:
    """Run the campaign to its conclusion.

    Whatever ends it, the servers that were started are stopped; what the loop itself can say of its end is
    on the tape. Raises the error that ended it.
    """
    loop.tape.on_amend = lambda amend: amend_settings(loop, amend)
    try:
        _invoke(loop, nodes)
    except Interrupted as interrupted:
        _stop_servers(loop)
        loop.tape.mark("stopped", str(interrupted))
        raise
    except MoeagentError as error:
        _stop_servers(loop)
        if not isinstance(error, TapeError):
            loop.tape.mark("failed", str(error))
        raise
    except Exception:
        # A fault of the program: nobody else would stop them.
        _stop_servers(loop)
        raise


def _stop_servers(loop: Loop) -> None:
    for problem in loop.world.emergency_stop():
        loop.emit(Progress("stop", f"{problem}: `moeagent reap` shows what is left"))


def _invoke(loop: Loop, nodes: Mapping[str, Step]) -> None:
    graph = build(loop, nodes)
    state: State = {}
    while True:
        graph.invoke(state, config={"recursion_limit": recursion_limit(loop.settings.limits)})
        if not loop.tape.waits_for_more():
            return
        loop.course.ended, loop.course.confirming = "", None
        state = _taken_up(loop)


def _taken_up(loop: Loop) -> State:
    """Where a run goes on after its end: the launch that awaits approval, the baseline, or the next idea."""
    waiting = awaited(loop.ledger)
    if waiting is None and len(loop.ledger.launches) < loop.settings.baseline.launches:
        return {"next": "record", "phase": "baseline", "attempt": 0}
    if waiting is None:
        return {"next": "propose", "phase": "explore"}
    return {
        "next": "approve",
        "phase": "explore",
        "hypothesis": waiting.hypothesis,
        "config": waiting.config,
        "attempt": waiting.attempt,
    }


def amend_settings(loop: Loop, amend: Json) -> None:
    """From here on the run has these limits, this goal, this policy: a resume may change them."""
    if amend:
        loop.settings = amended(loop.settings, amend)
        if PROPOSING & amend.keys():
            seat_proposer(loop)
        renew_model(loop)


def amended(settings: CampaignSettings, amend: Json) -> CampaignSettings:
    """The settings with some of them replaced; of a section only those that are given."""
    merged = settings.model_dump(mode="json")
    for name, given in amend.items():
        merged[name] = {**merged[name], **given} if isinstance(given, dict) else given
    return CampaignSettings(**merged)
