"""Whether the installed engine would take a configuration."""

from moeagent.agent.loop import Loop
from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.validate import validate_config


def problems_of(config: ServerConfig, loop: Loop) -> list[str]:
    """What would make the engine refuse it at start, each with what to do; empty when nothing would."""
    facts = loop.surveyed
    own = {*loop.settings.baseline.env, *(name for idea in loop.settings.idea for name in idea.env)}
    found = validate_config(config, facts.engine, host=facts.host, trusted_env=own)
    return [problem.message for problem in found if problem.fatal]
