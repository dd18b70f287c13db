"""What the loop checks before it pays for a launch, as a gate that any search can stand behind."""

from moeagent.agent.predictor import CampaignPredictor
from moeagent.agent.preflight import Known, objection
from moeagent.agent.worlds.bench import Bench
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import ServerConfig
from moeagent.tools.sim.worlds import BenchWorld


class Preflight:
    """The loop's own vetting, by the same function, for a world before its first launch."""

    def __init__(self, bench: Bench | BenchWorld) -> None:
        facts = bench.facts()
        predictor = CampaignPredictor(bench.workload, Ledger())
        predictor.learn(facts.host, facts.model)
        space = (knob.name for knob in bench.space() if not knob.name.startswith("-"))
        self._known = Known(facts.engine, facts.host, predictor, (*bench.baseline.env, *space))

    def objection(self, config: ServerConfig) -> str | None:
        """Why the configuration is not worth a launch, or None."""
        return objection(config, self._known)
