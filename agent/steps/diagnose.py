"""Name the cause of a failed launch from its log, and record the launch."""

from moeagent.agent.loop import Loop
from moeagent.agent.state import State
from moeagent.memory.records import LaunchOutcome, Stage
from moeagent.tools.diagnosis.diagnose import diagnose as diagnose_log


def diagnose(loop: Loop, state: State) -> State:
    """Stop what is left of the server, read its whole log, keep the answer with the launch."""
    draft = loop.launching
    ended = loop.world.stop(draft.id)
    log_text = loop.world.text(ended.log)
    stage: Stage | None = "serving" if draft.outcome is LaunchOutcome.DIED_SERVING else None
    diagnosis = diagnose_log(log_text, engine=loop.engine.name, stage=stage) if log_text.strip() else None
    for problem in ended.problems:
        loop.note(draft.id, problem)
    if diagnosis is None:
        loop.note(draft.id, draft.why or "the server left no log")
    loop.close_launch(diagnosis, log_text, ended.log)
    return {}
