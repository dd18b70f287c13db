"""What is checked before a launch is paid for: the engine's own rules, then what arithmetic rules out.

It turns down only what would surely die at start; what is tight is launched, with its risk in the hypothesis.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from moeagent.agent.predictor import CampaignPredictor
from moeagent.memory.records import EngineFacts, HostFacts, ServerConfig
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.validate import validate_config

DEFAULT = EngineInstall().name


@dataclass(frozen=True, slots=True)
class Known:
    """What a configuration is checked against."""

    engine: EngineFacts
    host: HostFacts
    predictor: CampaignPredictor
    """After it has learnt the same host and the model."""
    trusted_env: Collection[str] = ()
    """Variables that the user set himself; the catalogue need not have them."""
    further: Mapping[str, EngineFacts] = field(default_factory=dict)
    """The engine's other installs that answer, by name."""

    def engine_of(self, config: ServerConfig) -> EngineFacts | None:
        """The engine that a configuration runs; None for an install that does not answer."""
        return self.engine if config.install == DEFAULT else self.further.get(config.install)


def refusals(config: ServerConfig, known: Known) -> list[str]:
    """What would make the engine refuse it, each with what to do; empty when nothing would."""
    engine = known.engine_of(config)
    if engine is None:
        return [f"{config.engine} does not answer in the install {config.install}: mend [[engine.install]]"]
    found = validate_config(
        config,
        engine,
        host=known.host,
        model=known.predictor.rule_facts(),
        trusted_env=known.trusted_env,
    )
    return [problem.message for problem in found if problem.fatal]


def objection(config: ServerConfig, known: Known) -> str | None:
    """Why the configuration would surely die at start, or None."""
    return next(iter(refusals(config, known)), None) or known.predictor.impossible(config)
