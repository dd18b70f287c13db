"""What the loop checks before it pays for a launch, as a gate that any search can stand behind."""

from moeagent.agent.predictor import CampaignPredictor
from moeagent.agent.worlds.bench import Bench
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.validate import validate_config


class Preflight:
    """The loop's own vetting: the engine's flags and couplings, and what would surely die at start."""

    def __init__(self, bench: Bench) -> None:
        self._facts = bench.facts()
        self._trusted = tuple(bench.baseline.env) + tuple(
            knob.name for knob in bench.space() if not knob.name.startswith("-")
        )
        self._predictor = CampaignPredictor(bench.workload, Ledger())
        self._predictor.learn(self._facts.host, self._facts.model)

    def objection(self, config: ServerConfig) -> str | None:
        """Why the configuration is not worth a launch, or None."""
        found = validate_config(config, self._facts.engine, host=self._facts.host, trusted_env=self._trusted)
        fatal = next((problem.message for problem in found if problem.fatal), None)
        return fatal or self._predictor.impossible(config)
