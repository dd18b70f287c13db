"""Say what the last launch means: a verdict, or nothing yet."""

from moeagent.agent.loop import Loop
from moeagent.agent.policy import judge_ideas, launches_left
from moeagent.agent.state import State


def judge(loop: Loop, state: State) -> State:
    """Judge the idea that was launched, or every open idea when the incumbent was."""
    last = loop.ledger.launches[-1]
    course = loop.course
    if state["phase"] != "explore":
        return {}
    if last.config.id == loop.incumbent.id:
        judge_ideas(loop, list(course.open), launches_left(loop))
    elif state["hypothesis"]:
        course.fresh = state["hypothesis"]
        course.candidates[state["hypothesis"]] = last.config
        judge_ideas(loop, [state["hypothesis"]], launches_left(loop))
    return {}
