"""The predictors of tools/predict, bound to this campaign's machine, model, workload and own measurements."""

from typing import Any

from moeagent.memory.ledger import Ledger
from moeagent.memory.records import HostFacts, ModelFacts, PredictedEffect, ServerConfig, Workload
from moeagent.tools.predict.calibration import Calibration
from moeagent.tools.predict.records import Machine, ModelShape, Prediction, Unknown


class CampaignPredictor:
    """Knows nothing until the survey is read; then corrects itself with every launch of the campaign."""

    def __init__(self, workload: Workload, ledger: Ledger) -> None:
        self._workload = workload
        self._ledger = ledger
        self._calibrated: tuple[int, Calibration] | None = None
        self._predicted: dict[str, Prediction] = {}
        """By configuration, since the last launch."""
        self._machine: Machine | Unknown = Unknown(what="the machine", why="it was not surveyed yet")
        self._model: ModelShape | Unknown = Unknown(what="the model", why="it was not surveyed yet")

    def learn(self, host: HostFacts, model: ModelFacts) -> list[str]:
        """Take in the survey; returns what cannot be predicted, and why."""
        from moeagent.tools.predict.machine import machine_from_facts
        from moeagent.tools.predict.model_config import model_from_facts

        self._machine = machine_from_facts(host)
        self._model = model_from_facts(model)
        self._calibrated = None
        self._predicted.clear()
        told = [str(known) for known in (self._machine, self._model) if isinstance(known, Unknown)]
        machine = self._machine
        if isinstance(machine, Machine) and machine.gpu_name is not None and machine.spec is None:
            told.append(f"speed cannot be predicted: {machine.gpu_name} is not in the table of GPUs")
        return told

    def predict(self, config: ServerConfig) -> Prediction:
        """Memory and speed of a configuration."""
        from moeagent.tools.predict.predictor import predict

        calibration = self._calibration()
        if config.id not in self._predicted:
            found = predict(config, self._machine, self._model, self._workload, calibration)
            self._predicted[config.id] = found
        return self._predicted[config.id]

    def predict_effects(self, parent: ServerConfig, child: ServerConfig) -> tuple[PredictedEffect, ...]:
        """Relative change of output tok/s at each rung; empty when it cannot be told."""
        from moeagent.tools.predict.effects import effects_between

        return effects_between(parent, self.predict(parent), child, self.predict(child), self._machine)

    def risk(self, child: ServerConfig) -> tuple[float, str]:
        """Chance that a server of this configuration dies, and why."""
        from moeagent.tools.predict.risk import risk_of

        return risk_of(child, self.predict(child), self._machine, self._model)

    def rule_facts(self) -> dict[str, Any]:
        """What the engines' rules may ask about the model; empty when nothing is known of it."""
        from moeagent.tools.predict.rule_facts import rule_facts

        return rule_facts(self._model)

    def impossible(self, config: ServerConfig) -> str | None:
        """Why the configuration would surely die at start, or None."""
        return next(iter(self.predict(config).refusals), None)

    def _calibration(self) -> Calibration:
        """Derived once per launch: a ranking asks for hundreds of predictions between two launches."""
        from moeagent.tools.predict.learn import calibrate

        launches = self._ledger.launches
        if self._calibrated is None or self._calibrated[0] != len(launches):
            found = calibrate(launches, self._machine, self._model, self._workload)
            self._calibrated = (len(launches), found)
            self._predicted.clear()
        return self._calibrated[1]
