"""State what every gain is measured against, and have it launched."""

from moeagent.agent.loop import Loop, baseline_config
from moeagent.agent.spending import check_limits, no_more_launches
from moeagent.agent.state import State
from moeagent.agent.validation import problems_of
from moeagent.memory.errors import InputError
from moeagent.memory.findings.alike import Alike
from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.validate import canonical


def baseline(loop: Loop, state: State) -> State:
    """Check the goal against the machine and the baseline's flags against the engine.

    Raises InputError for a goal that nothing on this machine can measure and for a flag that the engine would
    refuse.
    """
    check_goal(loop)
    check_limits(loop)
    config = starting_point(loop)
    loop.promote(config, None)
    recall(loop, config)
    exhausted = no_more_launches(loop)
    if exhausted:
        return {"next": "report", "stop": exhausted}
    return {
        "next": "launch",
        "phase": "baseline",
        "hypothesis": None,
        "config": loop.remember(config),
        "attempt": 0,
        "rejected": 0,
        "stop": "",
    }


def check_goal(loop: Loop) -> None:
    """Raises InputError when the goal's measure cannot be had on this machine."""
    settings = loop.settings
    if settings.goal.name != "min-cost" or settings.host.price_per_hour:
        return
    if not any(gpu.power_limit_w for gpu in loop.surveyed.host.gpus):
        raise InputError(
            f"the goal min-cost needs a price, or the power of the GPUs, which {settings.host.target} does "
            "not tell: set price_per_hour in [host]"
        )


def recall(loop: Loop, config: ServerConfig) -> None:
    """Bring in the baseline's launches of earlier runs: what they spread by is this machine's noise."""
    settings, facts = loop.settings, loop.ledger.facts
    if facts is None:
        return
    alike = Alike(
        machine=facts.host.machine_id,
        scope=facts.scope,
        workload=settings.workload,
        load_from=settings.load_from,
        config=config,
    )
    loop.surveyed.earlier = loop.world.earlier(alike)
    count = sum(len(run) for run in loop.surveyed.earlier if len(run) > 1)
    if count:
        loop.note("noise", f"{count} earlier launches of this baseline on this machine tell its noise too")


def starting_point(loop: Loop) -> ServerConfig:
    """The settings' baseline in the engine's own spelling. Raises InputError for one that it would refuse."""
    config = canonical(baseline_config(loop.settings), loop.surveyed.engine)
    problems = problems_of(config, loop)
    if problems:
        raise InputError(f"the baseline cannot be launched: {problems[0]}. Change [baseline] in the settings")
    return config
