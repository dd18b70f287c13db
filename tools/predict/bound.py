"""The predictor with host, model and workload bound to it, as the loop hands it to a proposer."""

from collections.abc import Iterable

from moeagent.memory.errors import InputError
from moeagent.memory.records import HostFacts, Launch, ModelFacts, PredictedEffect, ServerConfig, Workload
from moeagent.tools.predict.calibration import Calibration
from moeagent.tools.predict.effects import effects
from moeagent.tools.predict.learn import calibrate
from moeagent.tools.predict.machine import machine_from_facts
from moeagent.tools.predict.model_config import model_from_facts
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Machine, ModelShape, Prediction, Unknown
from moeagent.tools.predict.risk import risk_of


class BoundPredictor:
    """Answers for configurations alone; one that cannot be read predicts nothing and is sure to die."""

    def __init__(
        self,
        machine: Machine | Unknown,
        model: ModelShape | Unknown,
        workload: Workload,
        calibration: Calibration | None = None,
    ) -> None:
        self.machine = machine
        self.model = model
        self.workload = workload
        self.calibration = calibration or Calibration()

    @classmethod
    def from_facts(
        cls, host: HostFacts, model: ModelFacts, workload: Workload, launches: Iterable[Launch] = ()
    ) -> "BoundPredictor":
        """A predictor for a surveyed host, corrected by the launches that were made on it."""
        machine, shape = machine_from_facts(host), model_from_facts(model)
        return cls(machine, shape, workload, calibrate(launches, machine, shape, workload))

    def predict(self, config: ServerConfig) -> Prediction:
        """Memory, speed, limits and problems. Raises InputError for a malformed configuration."""
        return predict(config, self.machine, self.model, self.workload, self.calibration)

    def predict_effects(self, parent: ServerConfig, child: ServerConfig) -> tuple[PredictedEffect, ...]:
        """Relative change of output tok/s at each rung; empty when it cannot tell."""
        try:
            return effects(parent, child, self.machine, self.model, self.workload, self.calibration)
        except InputError:
            return ()

    def risk(self, child: ServerConfig) -> tuple[float, str]:
        """Chance (0..1) that a server of this configuration dies, and why."""
        try:
            prediction = self.predict(child)
        except InputError as error:
            return 1.0, str(error)
        return risk_of(child, prediction, self.machine, self.model)
