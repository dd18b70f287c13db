"""The preflight of a campaign: what its survey found, its predictor, the variables that its user trusts."""

from moeagent.agent.loop import Loop
from moeagent.agent.preflight import Known, objection, refusals
from moeagent.memory.records import ServerConfig


def problems_of(config: ServerConfig, loop: Loop) -> list[str]:
    """What would make the engine refuse it at start, each with what to do; empty when nothing would."""
    return refusals(config, _known(loop))


def sure_death(config: ServerConfig, loop: Loop) -> str | None:
    """Why the configuration would surely die at start, or None."""
    return objection(config, _known(loop))


def _known(loop: Loop) -> Known:
    settings, facts = loop.settings, loop.surveyed
    own = {*settings.baseline.env, *(name for idea in settings.idea for name in idea.env)}
    return Known(facts.engine, facts.host, loop.predictor, trusted_env=own, further=facts.engines)
