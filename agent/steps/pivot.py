"""Apply a remedy to the failed configuration and try again, a bounded number of times, always one way."""

from moeagent.agent.loop import Loop
from moeagent.agent.proposers.pivot import next_pivot
from moeagent.agent.spending import no_more_launches
from moeagent.agent.state import State
from moeagent.memory.errors import EngineError
from moeagent.memory.records import Launch, Pivot


def pivot(loop: Loop, state: State) -> State:
    """The next attempt at this hypothesis, or its end as blocked."""
    failed = loop.ledger.launches[-1]
    loop.world.clock()
    reason = no_more_launches(loop)
    following = None if reason else remedy(loop, state, failed)
    if following is not None:
        loop.decide(following)
        return {"next": "approve", "config": following.config_after, "attempt": following.attempt}
    if state["phase"] == "baseline":
        raise EngineError(baseline_failed(failed))
    return {"next": "judge"}


def remedy(loop: Loop, state: State, failed: Launch) -> Pivot | None:
    """The first remedy of the diagnosis that can be applied within the bounds."""
    hypothesis = state.get("hypothesis")
    attempt = state.get("attempt", 0) + 1
    proven = failed.config.id in (loop.baseline.id, loop.incumbent.id)
    if failed.diagnosis is None or hypothesis is None or proven or attempt > loop.settings.limits.pivots:
        return None
    step = next_pivot(failed.config, failed.diagnosis, loop.ledger.pivots_for(hypothesis), loop.view())
    if step is None:
        return None
    after = loop.remember(step.config)
    return Pivot(
        hypothesis=hypothesis,
        attempt=attempt,
        remedy=step.remedy,
        config_before=failed.config.id,
        config_after=after,
    )


def baseline_failed(failed: Launch) -> str:
    """One message: what happened, which line is the cause, what to change."""
    diagnosis = failed.diagnosis
    if diagnosis is None:
        return (
            f"the baseline does not start ({failed.outcome.value}) and left no log: try its command by hand"
        )
    first = next(iter(diagnosis.remedies), None)
    advice = f" Try: {first.target}: {first.change}." if first else ""
    line = f" Line {diagnosis.line_no}: {diagnosis.root_line}." if diagnosis.root_line else ""
    return f"the baseline does not work: {diagnosis.failure_class}. {diagnosis.explanation}{line}{advice}"
