"""Act on what is known: the next launch, the next idea, the confirmation of the champion, or the end."""

from moeagent.agent.loop import Loop
from moeagent.agent.policy import (
    begin_confirmation,
    confirmation_of,
    following,
    judge_ideas,
)
from moeagent.agent.spending import no_more_launches
from moeagent.agent.state import State
from moeagent.memory.errors import HostError
from moeagent.memory.records import ServerConfig


def record(loop: Loop, state: State) -> State:
    """Decide where to go."""
    loop.world.clock()
    exhausted = no_more_launches(loop)
    match state["phase"]:
        case "baseline":
            return _more_baseline(loop, exhausted)
        case "confirm":
            return _go_on_confirming(loop, exhausted)
    return _explore(loop)


def _more_baseline(loop: Loop, exhausted: str) -> State:
    """The baseline is launched several times: the noise floor comes from these."""
    check_measure(loop)
    if exhausted:
        return _conclude(loop, exhausted)
    if len(loop.ledger.launches) < loop.settings.baseline.launches:
        return _launch(loop, loop.baseline, None)
    return {"phase": "explore", "next": "propose"}


def check_measure(loop: Loop) -> None:
    """Raises HostError when a goal that rests on energy got none from the baseline."""
    goal, host = loop.settings.goal, loop.settings.host
    rungs = [rung for launch in loop.ledger.launches for rung in launch.rungs]
    if goal.name != "min-cost" or host.price_per_hour or any(rung.energy_j is not None for rung in rungs):
        return
    raise HostError(
        f"{host.target}: the power of the GPUs could not be sampled while the baseline was measured, so the "
        "goal min-cost has no value: see what `nvidia-smi --query-gpu=power.draw --format=csv` says there, "
        "make the rungs longer, or set price_per_hour in [host]"
    )


def _explore(loop: Loop) -> State:
    step = following(loop)
    if step.kind == "propose":
        return {"next": "propose"}
    if step.kind == "finish":
        judge_ideas(loop, list(loop.course.open), 0)
        return _confirm(loop, loop.course.ended or step.reason)
    if step.kind == "launch-incumbent":
        return _launch(
            loop, loop.incumbent, loop.ledger.incumbent.hypothesis if loop.ledger.incumbent else None
        )
    assert step.idea is not None
    return _launch(loop, loop.course.candidates[step.idea], step.idea)


def _confirm(loop: Loop, reason: str) -> State:
    """The champion is launched again before the end, beside the baseline."""
    loop.course.ended = reason
    if not begin_confirmation(loop):
        return _conclude(loop, reason)
    return {"phase": "confirm", **_next_fresh(loop)}


def _go_on_confirming(loop: Loop, exhausted: str) -> State:
    confirming = loop.course.confirming
    if confirming is not None and confirming.order and not exhausted:
        return _next_fresh(loop)
    return _conclude(loop, loop.course.ended)


def _next_fresh(loop: Loop) -> State:
    confirming = loop.course.confirming
    assert confirming is not None
    if confirming.order.pop(0) == "incumbent":
        return _launch(loop, loop.baseline, None)
    return _launch(loop, loop.incumbent, loop.incumbent_hypothesis)


def _conclude(loop: Loop, reason: str) -> State:
    confirmation = confirmation_of(loop)
    if confirmation.status == "refuted":
        loop.note("confirmation", f"{confirmation.reason}; the baseline stays the best")
        loop.promote(loop.baseline, None)
    return {"next": "report", "stop": reason}


def _launch(loop: Loop, config: ServerConfig, hypothesis: str | None) -> State:
    return {"next": "approve", "config": loop.remember(config), "hypothesis": hypothesis, "attempt": 0}
