"""What a configuration will need and do, before it is launched: memory, speed, effects, risk.

`predict` answers for one configuration, `effects` for a change, `risk_of` for its danger, `calibrate` learns
from earlier launches on the host. Unknown machines and models are answers, not errors.
"""

from moeagent.tools.predict.calibration import Calibration
from moeagent.tools.predict.effects import effects
from moeagent.tools.predict.learn import calibrate
from moeagent.tools.predict.machine import machine_from_facts, machine_from_name
from moeagent.tools.predict.model_config import model_from_config, model_from_facts
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import (
    Machine,
    MemoryTable,
    ModelShape,
    Prediction,
    RungPrediction,
    Unknown,
)
from moeagent.tools.predict.risk import risk, risk_of

__all__ = [
    "Calibration", "Machine", "MemoryTable", "ModelShape", "Prediction", "RungPrediction",
    "Unknown", "calibrate", "effects", "machine_from_facts", "machine_from_name", "model_from_config",
    "model_from_facts", "predict", "risk", "risk_of",
]  # fmt: skip
