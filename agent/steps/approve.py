"""Every configuration that was not launched before passes here: the policy, and where it says so a person.

Question and answer are on the tape, so a replay asks nobody.
"""

from moeagent.agent.approval.answers import AWAITING, may_launch, refused_in_a_row
from moeagent.agent.approval.policy import Ruling, rule_on, silent
from moeagent.agent.approval.question import question_of, subject_of
from moeagent.agent.loop import Loop
from moeagent.agent.state import State
from moeagent.memory.records import Hypothesis, ServerConfig, Verdict, VerdictKind
from moeagent.memory.records.approval import Approval

ANSWERS = {"yes": "approved", "no": "declined", "skip": "skipped", "awaiting": "awaiting"}
TOLD = {
    "denied": "denied by the approval policy",
    "declined": "declined by the engineer",
    "skipped": "left for later by the engineer",
}
MOST_REFUSED = 8
"""Ideas refused in a row after which none is asked for any more."""


def approve(loop: Loop, state: State) -> State:
    """Launch, or say why not. The baseline is the engineer's own, and what ran before was approved before."""
    settings, config = loop.settings, loop.configs[state["config"]]
    hypothesis = loop.ledger.hypothesis(state.get("hypothesis") or "")
    known = loop.ledger.launches_of(config) or may_launch(loop.ledger, config.id)
    pending = waited_for(loop, config)
    if hypothesis is None or known or (silent(settings.policy, settings.approve) and not pending):
        return {"next": "launch"}
    said = said_of(loop, hypothesis, state.get("attempt", 0), config)
    loop.decide(said)
    if said.answer == "awaiting":
        return {"next": "report", "stop": AWAITING}
    return {"next": "launch"} if said.passed else without(loop, said)


def said_of(loop: Loop, hypothesis: Hypothesis, attempt: int, config: ServerConfig) -> Approval:
    """The policy's word, or that of a person whom it wants asked."""
    ruling = rule_on(loop.settings.policy, loop.settings.approve, subject_of(loop, hypothesis, config))
    answer, by = ("denied" if ruling.action == "deny" else "allowed"), ruling.by
    if ruling.action == "ask" or (ruling.action == "allow" and waited_for(loop, config)):
        said = loop.world.approve(question_of(loop, hypothesis, attempt, config, ruling))
        if ruling.action == "ask" or said.answer != "awaiting":
            answer, by = ANSWERS[said.answer], said.by
    return Approval.model_validate(
        {
            "hypothesis": hypothesis.id,
            "attempt": attempt,
            "config": config.id,
            "answer": answer,
            "by": by,
            "reason": reason_of(ruling),
        }
    )


def waited_for(loop: Loop, config: ServerConfig) -> bool:
    """Whether the run stopped for this very question: an answer counts, though the mode is another now."""
    last = loop.ledger.approvals[-1] if loop.ledger.approvals else None
    return last is not None and last.answer == "awaiting" and last.config == config.id


def reason_of(ruling: Ruling) -> str:
    """Why it was allowed, denied or asked."""
    asked = f"asked by {ruling.by}" if ruling.action == "ask" else ""
    return ": ".join(part for part in (asked, ruling.reason) if part)


def without(loop: Loop, said: Approval) -> State:
    """Go on without this launch: a remedy is left out, an idea ends as inconclusive."""
    if said.attempt:
        return {"next": "judge"}
    loop.course.open.pop(said.hypothesis, None)
    reason = f"{TOLD[said.answer]} ({said.by})" + (f": {said.reason}" if said.reason else "")
    loop.decide(Verdict(hypothesis=said.hypothesis, kind=VerdictKind.INCONCLUSIVE, reason=reason))
    refused = refused_in_a_row(loop.ledger)
    if refused < MOST_REFUSED:
        return {"next": "propose"}
    loop.course.ended = f"{refused} ideas in a row were refused, the last as {reason}"
    return {"next": "record"}
