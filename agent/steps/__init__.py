"""One file per node of the graph, named as the node is."""

from collections.abc import Callable

from moeagent.agent.loop import Loop
from moeagent.agent.state import State
from moeagent.agent.steps.approve import approve
from moeagent.agent.steps.baseline import baseline
from moeagent.agent.steps.diagnose import diagnose
from moeagent.agent.steps.judge import judge
from moeagent.agent.steps.launch import launch
from moeagent.agent.steps.measure import measure
from moeagent.agent.steps.pivot import pivot
from moeagent.agent.steps.propose import propose
from moeagent.agent.steps.record import record
from moeagent.agent.steps.report import report
from moeagent.agent.steps.survey import survey
from moeagent.agent.steps.vet import vet

NODES: dict[str, Callable[[Loop, State], State]] = {
    step.__name__: step
    for step in (
        survey, baseline, propose, vet, approve, launch, measure, diagnose, pivot, judge, record, report,
    )
}  # fmt: skip
