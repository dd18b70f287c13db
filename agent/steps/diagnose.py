"""Name the cause of a failed launch from its log, and record the launch."""

from moeagent.agent.loop import Loop
from moeagent.agent.second_opinion import second_opinion
from moeagent.agent.state import State
from moeagent.memory.errors import InputError
from moeagent.memory.records import Diagnosis, LaunchOutcome, Stage
from moeagent.tools.diagnosis.catalogue import Catalogue
from moeagent.tools.diagnosis.diagnose import diagnose as diagnose_log


def diagnose(loop: Loop, state: State) -> State:
    """Stop what is left of the server, read its whole log, keep the answer with the launch."""
    draft = loop.launching
    ended = loop.world.stop(draft.id)
    log_text = loop.world.text(ended.log)
    for problem in ended.problems:
        loop.note(draft.id, problem)
    diagnosis = cause_in(log_text, loop.engine.name, draft.outcome)
    if diagnosis is None:
        loop.note(draft.id, draft.why or "the server left no log")
    else:
        diagnosis = second_opinion(loop, draft.id, log_text, diagnosis)
    loop.close_launch(diagnosis, log_text, ended.log)
    return {}


def cause_in(
    log_text: str, engine: str, outcome: LaunchOutcome, catalogue: Catalogue | None = None
) -> Diagnosis | None:
    """The diagnosis by code alone; None where there is no log, or no line of one in what was printed."""
    stage: Stage | None = "serving" if outcome is LaunchOutcome.DIED_SERVING else None
    if not log_text.strip():
        return None
    try:
        return diagnose_log(log_text, engine=engine, stage=stage, catalogue=catalogue)
    except InputError:
        return None
