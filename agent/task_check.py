"""When the user's own check is run: on the baseline, and on what would be claimed."""

from moeagent.agent.events import StepBegan
from moeagent.agent.judge import on_the_ladder
from moeagent.agent.loop import Loop, OpenLaunch
from moeagent.agent.policy import ran
from moeagent.memory.errors import InputError
from moeagent.memory.records import Launch
from moeagent.tools.stats.contrast import contrast, relative
from moeagent.tools.stats.score import goal_series


def check_task(loop: Loop) -> None:
    """Ask the server under way, where a claim may rest on the answer; once for each configuration.

    Raises InputError when the baseline fails: the check, not a configuration, is then what is wrong.
    """
    settings, draft = loop.settings.output_check, loop.launching
    if not settings.command or draft.config.id in loop.outputs.tasks or not worth_asking(loop):
        return
    loop.emit(StepBegan("measure", f"{draft.id} task check"))
    found = loop.world.check_task(draft.id, draft.config, settings.command, settings.command_timeout_s)
    loop.note(draft.id, found.reason(loop.outputs.tasks.get(loop.baseline.id)))
    loop.outputs.tasks[draft.config.id] = found
    if draft.config.id == loop.baseline.id and not found.ok:
        raise InputError(
            f"the baseline fails your own check ({found.reason()}): mend command in [output_check], or leave "
            "it out"
        )


def worth_asking(loop: Loop) -> bool:
    """Whether this launch is the baseline's, or its configuration measures better by what is worth a change.

    Where steps are not proven, anything may be built on, so everything is asked.
    """
    draft, limits = loop.launching, loop.settings.limits
    if draft.config.id == loop.baseline.id or not limits.prove_each_step:
        return True
    goal, price = loop.settings.goal, loop.settings.host.price_per_hour
    ladder = loop.settings.workload.ladder
    before = ran(loop.ledger.launches_of(loop.incumbent))
    after = (*ran(loop.ledger.launches_of(draft.config)), measured(draft))
    series = [
        goal_series(goal, on_the_ladder(side, ladder), strict=strict, price_per_hour=price)[0]
        for side, strict in ((before, False), (after, True))
    ]
    if series[1] and not series[0]:
        return True
    found = contrast(*series)
    return found is not None and relative(found.log_ratio) >= goal.min_effect


def measured(draft: OpenLaunch) -> Launch:
    """The launch under way as it will be recorded, as far as the goal looks at it."""
    return Launch(
        id=draft.id,
        hypothesis=draft.hypothesis,
        config=draft.config,
        command=draft.command,
        outcome=draft.outcome,
        rungs=tuple(draft.rungs),
    )
