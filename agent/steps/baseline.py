"""State what every gain is measured against, and have it launched."""

from moeagent.agent.loop import Loop, baseline_config
from moeagent.agent.state import State
from moeagent.agent.validation import problems_of
from moeagent.memory.errors import InputError
from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.validate import canonical


def baseline(loop: Loop, state: State) -> State:
    """Check the baseline's flags against the engine. Raises InputError for one that it would refuse."""
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


def starting_point(loop: Loop) -> ServerConfig:
    """The settings' baseline in the engine's own spelling. Raises InputError for one that it would refuse."""
    config = canonical(baseline_config(loop.settings), loop.surveyed.engine)
    problems = problems_of(config, loop)
    if problems:
        raise InputError(f"the baseline cannot be launched: {problems[0]}. Change [baseline] in the settings")
    return config
