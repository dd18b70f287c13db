"""State what every gain is measured against, and have it launched."""

from moeagent.agent.loop import Loop, baseline_config
from moeagent.agent.state import State
from moeagent.agent.validation import problems_of
from moeagent.memory.errors import InputError
from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.validate import canonical


def baseline(loop: Loop, state: State) -> State:
    """Check the goal against the machine and the baseline's flags against the engine.

    Raises InputError for a goal that nothing on this machine can measure and for a flag that the engine would
    refuse.
    """
    check_goal(loop)
    config = starting_point(loop)
    loop.promote(config, None)
    return {
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


def starting_point(loop: Loop) -> ServerConfig:
    """The settings' baseline in the engine's own spelling. Raises InputError for one that it would refuse."""
    config = canonical(baseline_config(loop.settings), loop.surveyed.engine)
    problems = problems_of(config, loop)
    if problems:
        raise InputError(f"the baseline cannot be launched: {problems[0]}. Change [baseline] in the settings")
    return config
