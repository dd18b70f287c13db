"""One rung of the campaign's workload, as the load generator takes it."""

from moeagent.agent.loop import Loop
from moeagent.memory.records import Constraint
from moeagent.memory.tape.lines import Json
from moeagent.tools.load.spec import RandomPrompts, RungSpec, Slo

SLO_FIELDS = {"ttft": "ttft_ms", "tpot": "tpot_ms", "e2e": "e2e_ms"}


def rung_spec(loop: Loop, concurrency: int, attempt: int = 0) -> Json:
    """The rung's specification.

    The n-th launch of every configuration gets the same prompts, which no other rung and no other repeat
    gets, so that compared figures see the same work and no cache helps one of them.
    """
    workload = loop.settings.workload
    repeat = len(loop.ledger.launches_of(loop.launching.config))
    assert loop.words is not None
    spec = RungSpec(
        concurrency=concurrency,
        requests=workload.prompts(concurrency),
        output_len=workload.output_len,
        random=RandomPrompts(words=loop.words),
        seed=f"{workload.seed}/{repeat}/{attempt}/{concurrency}",
        flush_path=loop.engine.load.flush_path,
        slo=slo(loop.settings.goal.constraints),
    )
    return spec.model_dump(mode="json", exclude_none=True)


def slo(constraints: tuple[Constraint, ...]) -> Slo | None:
    """The bounds that a single request can meet, in milliseconds, for goodput."""
    bounds = {SLO_FIELDS[c.metric]: c.bound * 1000 for c in constraints if c.metric in SLO_FIELDS}
    return Slo(**bounds) if bounds else None
