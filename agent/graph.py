"""The whole loop: survey, baseline, then propose, vet, launch, measure, judge, record within the budget."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from moeagent.agent import steps
from moeagent.agent.events import StepBegan
from moeagent.agent.loop import Loop
from moeagent.agent.settings import LimitSettings
from moeagent.agent.state import State

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

Step = Callable[[Loop, State], State]
NODES_PER_LAUNCH = 8
"""Longest way from one launch to the next: diagnose, pivot, judge, record, propose, vet, approve, launch."""


def build(loop: Loop, nodes: Mapping[str, Step] = steps.NODES) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """The compiled graph over this loop; other nodes than the usual ones are for other worlds."""
    from langgraph.graph import END, START, StateGraph

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, step in nodes.items():
        graph.add_node(name, partial(_traced, loop, name, step))

    graph.add_conditional_edges(START, entry, ["survey", "record", "propose", "approve"])
    graph.add_edge("survey", "baseline")
    graph.add_conditional_edges("baseline", asked, ["launch", "report"])
    graph.add_conditional_edges("propose", asked, ["vet", "record"])
    graph.add_conditional_edges("vet", asked, ["approve", "propose", "record"])
    graph.add_conditional_edges("approve", asked, ["launch", "propose", "judge", "record", "report"])
    graph.add_conditional_edges("launch", asked, ["measure", "diagnose"])
    graph.add_conditional_edges("measure", asked, ["judge", "diagnose"])
    graph.add_edge("diagnose", "pivot")
    graph.add_conditional_edges("pivot", asked, ["approve", "judge"])
    graph.add_edge("judge", "record")
    graph.add_conditional_edges("record", asked, ["approve", "propose", "report"])
    graph.add_edge("report", END)
    return graph.compile()


def entry(state: State) -> str:
    """A campaign begins with the survey; one that goes on after its end, where it had come to."""
    return state.get("next") or "survey"


def asked(state: State) -> str:
    """The node that the last one asked for."""
    return state["next"]


def recursion_limit(limits: LimitSettings) -> int:
    """A fuse above anything that the run's own limits allow, not a budget."""
    return 50 + NODES_PER_LAUNCH * (limits.launches + limits.experiments * 10)


def _traced(loop: Loop, name: str, step: Step, state: State) -> State:
    loop.emit(StepBegan(name))
    return step(loop, state)


def picture() -> str:
    """The graph as mermaid text, for the documentation; drawn without running anything."""
    return build(cast(Loop, None)).get_graph().draw_mermaid()
