"""What is checked before a launch is paid for: the engine's own rules, then what arithmetic rules out.

It turns down only what would surely die at start; what is tight is launched, with its risk in the hypothesis.
"""

from collections.abc import Collection
from dataclasses import dataclass

from moeagent.agent.predictor import CampaignPredictor
from moeagent.memory.records import EngineFacts, HostFacts, ServerConfig
from moeagent.tools.engines.validate import validate_config


@dataclass(frozen=True, slots=True)
class Known:
    """What a configuration is checked against."""

    engine: EngineFacts
    host: HostFacts
    predictor: CampaignPredictor
    """After it has learnt the same host and the model."""
    trusted_env: Collection[str] = ()
    """Variables that the user set himself; the catalogue need not have them."""


def refusals(config: ServerConfig, known: Known) -> list[str]:
    """What would make the engine refuse it, each with what to do; empty when nothing would."""
    found = validate_config(
        config,
        known.engine,
        host=known.host,
        model=known.predictor.rule_facts(),
        trusted_env=known.trusted_env,
    )
    return [problem.message for problem in found if problem.fatal]


def objection(config: ServerConfig, known: Known) -> str | None:
    """Why the configuration would surely die at start, or None."""
    return next(iter(refusals(config, known)), None) or known.predictor.impossible(config)
