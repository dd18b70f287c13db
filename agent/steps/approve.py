"""Ask the engineer before a launch, where the settings want it. Question and answer are on the tape."""

from moeagent.agent.loop import Loop
from moeagent.agent.state import State
from moeagent.memory.records import Verdict, VerdictKind


def approve(loop: Loop, state: State) -> State:
    """Pass on at once unless the settings ask for approval."""
    if not loop.settings.approve:
        return {"next": "launch"}
    hypothesis = loop.ledger.hypotheses[-1]
    question = f"{hypothesis.id}: {hypothesis.statement}"
    answer = loop.world.approve(question, " ".join(hypothesis.change.knobs()))
    if answer == "yes":
        return {"next": "launch"}
    if answer == "no":
        loop.decide(
            Verdict(
                hypothesis=hypothesis.id, kind=VerdictKind.INCONCLUSIVE, reason="declined by the engineer"
            )
        )
        return {"next": "propose"}
    return {"next": "report", "stop": "awaiting approval"}
