"""Turn down what would surely fail; launch what is merely risky."""

from collections.abc import Callable

from moeagent.agent.loop import Loop
from moeagent.agent.proposers.protocol import Draft
from moeagent.agent.state import State
from moeagent.agent.validation import sure_death
from moeagent.memory.ledger import RejectedIdea
from moeagent.memory.records import Hypothesis, ServerConfig, VerdictKind

MAX_REJECTED = 8
REFUTED = (VerdictKind.BLOCKED, VerdictKind.REGRESSED, VerdictKind.NEUTRAL, VerdictKind.NO_OP)


def vet(loop: Loop, state: State) -> State:
    """Number the draft as a hypothesis, or send it back with the reason."""
    draft = loop.draft
    assert draft is not None
    found = vetted(loop, draft)
    loop.decide(found)
    if isinstance(found, Hypothesis):
        loop.drafts[found.id] = draft
        config = loop.remember(loop.configs[draft.parent].apply(draft.change))
        return {"next": "approve", "hypothesis": found.id, "config": config, "attempt": 0, "rejected": 0}
    rejected = state.get("rejected", 0) + 1
    if rejected >= MAX_REJECTED:
        loop.course.ended = f"{rejected} ideas in a row were turned down, the last because {found.reason}"
        return {"next": "record", "rejected": rejected}
    return {"next": "propose", "rejected": rejected}


def vetted(loop: Loop, draft: Draft) -> Hypothesis | RejectedIdea:
    """The draft with its number, or the reason against it."""
    reason = objection(loop, draft, loop.configs.get(draft.parent))
    if reason is None:
        return draft.numbered(f"H{len(loop.ledger.hypotheses) + 1}")
    return RejectedIdea(statement=draft.statement, change=draft.change, reason=reason, source=draft.source)


def objection(loop: Loop, draft: Draft, parent: ServerConfig | None) -> str | None:
    """Why the draft is not worth a launch, or None."""
    if parent is None:
        return f"its parent configuration {draft.parent} is not known"
    config = parent.apply(draft.change)
    if config == parent:
        return "it changes nothing"
    view = loop.view()
    checks: tuple[Callable[[], str | None], ...] = (
        lambda: view.space.objection(draft.change),
        lambda: already_tried(loop, config),
        lambda: refuted_before(loop, draft),
        lambda: sure_death(config, loop),
    )
    return next((reason for check in checks if (reason := check())), None)


def already_tried(loop: Loop, config: ServerConfig) -> str | None:
    """A configuration that was launched before is not a new idea."""
    launches = loop.ledger.launches_of(config)
    return f"this configuration was launched already ({launches[0].id})" if launches else None


def refuted_before(loop: Loop, draft: Draft) -> str | None:
    """What an earlier run refuted in exactly this scope is not paid for again."""
    for prior in loop.surveyed.priors:
        if prior.match == "exact" and prior.kind in REFUTED and prior.change == draft.change:
            return f"run {prior.run} found it {prior.kind.value} in this scope: {prior.reason}"
    return None
