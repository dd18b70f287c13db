"""What a run was told about its launches so far, read from its decisions."""

from moeagent.memory.ledger import Ledger
from moeagent.memory.records.approval import Approval

AWAITING = "awaiting approval"
"""How a run ends that nobody answered; its status and its reason."""


def awaited(ledger: Ledger) -> Approval | None:
    """The launch that the run stopped at because nobody could be asked; None when it ended otherwise."""
    last = ledger.approvals[-1] if ledger.approvals else None
    ended = ledger.conclusion is not None and ledger.conclusion.status == AWAITING
    return last if ended and last is not None and last.answer == "awaiting" else None


def may_launch(ledger: Ledger, config: str) -> bool:
    """Whether this configuration passed already: it is not asked about twice."""
    return any(each.config == config and each.passed for each in ledger.approvals)


def never_launched(ledger: Ledger) -> frozenset[str]:
    """Hypotheses that were refused before their first launch: they cost nothing."""
    refused = {each.hypothesis for each in ledger.approvals if each.refused}
    return frozenset(refused - {launch.hypothesis for launch in ledger.launches})


def refused_in_a_row(ledger: Ledger) -> int:
    """Ideas refused since one was last launched."""
    refused, count = never_launched(ledger), 0
    for hypothesis in reversed(ledger.hypotheses):
        if hypothesis.id not in refused:
            break
        count += 1
    return count
