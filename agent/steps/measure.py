"""Load the server at rising concurrency; keep what was measured when it dies."""

from moeagent.agent.events import StepBegan
from moeagent.agent.loop import Loop
from moeagent.agent.outputs import PROMPTS
from moeagent.agent.state import State
from moeagent.agent.task_check import check_task
from moeagent.agent.workload import rung_spec
from moeagent.agent.world import RungReport
from moeagent.memory.records import LaunchOutcome, Rung
from moeagent.tools.stats.metrics import unknown

ATTEMPTS = 3
"""Times that a rung is measured before its bad measurement is kept as such."""
THROTTLED_AGAIN = 1
"""Repeats of a rung that the GPUs spoilt: heat does not go away by measuring on."""

STALLED = 0.05
"""Part of a rung that the server stood still for from which the rung is measured again: on one H200 clean
rungs of vLLM had at most 0.035, those in which it compiled kernels 0.08 to 0.31."""
STALLED_AGAIN = 2


def measure(loop: Loop, state: State) -> State:
    """Climb the ladder; a dead server ends the climb, and its partial rung is kept."""
    draft = loop.launching
    draft.planned = ladder(loop)
    if not (calibrated(loop) if loop.words is None else answers_a_prompt(loop, loop.words)):
        draft.outcome = LaunchOutcome.DIED_SERVING
        return {"next": "diagnose"}
    for concurrency in draft.planned:
        loop.emit(StepBegan("measure", f"{draft.id} at concurrency {concurrency}"))
        report = measured_well(loop, concurrency)
        draft.rungs.append(report.rung)
        if not report.alive or report.rung.completed == 0:
            draft.outcome = LaunchOutcome.DIED_SERVING
            return {"next": "diagnose"}
    sample_outputs(loop)
    check_task(loop)
    ended = loop.world.stop(draft.id)
    for problem in ended.problems:
        loop.note(draft.id, problem)
    loop.close_launch(None, loop.world.text(ended.log), ended.log)
    return {"next": "judge"}


def measured_well(loop: Loop, concurrency: int) -> RungReport:
    """The rung's report; one that was spoilt or stood still is measured again, a few times."""
    draft = loop.launching
    for attempt in range(ATTEMPTS):
        report = loop.world.load(draft.id, draft.config, rung_spec(loop, concurrency, attempt))
        if report.relaunched:
            loop.note(
                draft.id, f"the server was gone at resume and was started again before rung {concurrency}"
            )
        if not report.alive or report.rung.failed or not again(loop, report.rung, attempt):
            break
    stalled = report.rung.stalled or 0.0
    if report.alive and stalled > STALLED:
        loop.note(
            draft.id, f"concurrency {concurrency}: the server stood still for {stalled:.0%} of the rung"
        )
    return report


def again(loop: Loop, rung: Rung, attempt: int) -> bool:
    """Whether a rung is measured once more: what was measured says nothing, or carries first-use costs."""
    if not unknown(loop.settings.goal, rung):
        return (rung.stalled or 0.0) > STALLED and attempt < STALLED_AGAIN
    return not (rung.throttled and attempt >= THROTTLED_AGAIN)


def sample_outputs(loop: Loop) -> None:
    """Keep greedy answers of every baseline launch, and of the first launch of anything else."""
    settings, draft = loop.settings.output_check, loop.launching
    again = loop.ledger.launches_of(draft.config) and draft.config.id != loop.baseline.id
    if not settings.enabled or again:
        return
    top = max(loop.settings.workload.ladder)
    asked = {
        "prompts": list(PROMPTS[: settings.prompts]),
        "batch_sizes": [size for size in settings.batch_sizes if size <= top] or [1],
        "max_tokens": settings.max_tokens,
    }
    loop.emit(StepBegan("measure", f"{draft.id} output check"))
    loop.outputs.add(draft.config, loop.world.sample_outputs(draft.id, draft.config, asked))


def calibrated(loop: Loop) -> bool:
    """Learn how long a prompt of the wanted number of tokens is; False when the server cannot answer one."""
    draft = loop.launching
    found = loop.world.calibrate(draft.id, draft.config, loop.settings.workload.input_len)
    if found.problem:
        loop.note(draft.id, found.problem)
    loop.words = found.words
    return loop.words is not None


def answers_a_prompt(loop: Loop, words: int) -> bool:
    """Whether the server outlives its first long prefill: it can be ready and die of that."""
    draft = loop.launching
    problem = loop.world.first_prompt(draft.id, draft.config, words)
    if problem:
        draft.why = f"ready, but not a single prompt of the workload's length was answered: {problem}"
        loop.note(draft.id, draft.why)
    return not problem


def ladder(loop: Loop) -> tuple[int, ...]:
    """The workload's concurrencies, with canary rungs before the jump where the server may die."""
    draft = loop.drafts.get(loop.launching.hypothesis or "")
    canary = draft.canary if draft else ()
    top = max(loop.settings.workload.ladder)
    return tuple(sorted({*loop.settings.workload.ladder, *(c for c in canary if c < top)}))
