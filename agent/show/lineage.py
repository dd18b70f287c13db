"""Which hypothesis built on which: the tree of a run, in the order in which it grew."""

from dataclasses import dataclass

from moeagent.memory.records import Hypothesis, Verdict
from moeagent.memory.run_view import RunView

EARLIER_RUN = "run "
"""How the source of an idea begins that is another run; others are published facts."""


@dataclass(frozen=True)
class Node:
    """One hypothesis in the tree. The root, the baseline, is no node."""

    hypothesis: Hypothesis
    verdict: Verdict | None
    parent: str | None
    """Id of the hypothesis whose configuration it changes; None for the baseline's."""
    depth: int
    """1 on the baseline, one more for each accepted change below it."""
    order: int
    """Place in the run, from 1."""


def lineage(view: RunView) -> tuple[Node, ...]:
    """Every hypothesis with its parent, in the order of the run."""
    owner = {i.config.id: i.hypothesis for i in view.ledger.incumbents}
    depth: dict[str | None, int] = {None: 0}
    nodes = []
    for order, hypothesis in enumerate(view.ledger.hypotheses, start=1):
        parent = owner.get(hypothesis.parent)
        depth[hypothesis.id] = depth.get(parent, 0) + 1
        verdict = view.ledger.verdict(hypothesis.id)
        nodes.append(Node(hypothesis, verdict, parent, depth[hypothesis.id], order))
    return tuple(nodes)


def from_earlier_runs(view: RunView) -> tuple[tuple[Hypothesis, Verdict | None], ...]:
    """The ideas that came from an earlier run, with what became of them here."""
    ideas = (idea for idea in view.ledger.hypotheses if idea.prior.startswith(EARLIER_RUN))
    return tuple((idea, view.ledger.verdict(idea.id)) for idea in ideas)


def children(nodes: tuple[Node, ...], parent: str | None) -> list[Node]:
    """The hypotheses that change this one's configuration; None for the baseline's."""
    return [node for node in nodes if node.parent == parent]
