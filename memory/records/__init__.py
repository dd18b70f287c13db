"""The shared records: configuration, workload, hypothesis, launch, measurement, diagnosis, verdict, facts."""

from moeagent.memory.records.base import Record, canonical_json, fingerprint
from moeagent.memory.records.config import ConfigChange, FlagValue, ServerConfig
from moeagent.memory.records.diagnosis import Alternative, Diagnosis, Remedy, Stage, Symptom
from moeagent.memory.records.experiment import Launch, LaunchOutcome, Pivot, StabilityBoundary
from moeagent.memory.records.facts import EngineFacts, Gpu, HostFacts, Knob, ModelFacts, Scope
from moeagent.memory.records.hypothesis import (
    Effect,
    Hypothesis,
    PredictedEffect,
    PredictionScore,
    Verdict,
    VerdictKind,
)
from moeagent.memory.records.measurement import ClientHealth, Distribution, GpuLoad, GpuSamples, Rung
from moeagent.memory.records.workload import Constraint, Goal, Workload

__all__ = [
    "Alternative", "ClientHealth", "ConfigChange", "Constraint", "Diagnosis", "Distribution", "Effect",
    "EngineFacts", "FlagValue", "Goal", "Gpu", "GpuLoad", "GpuSamples", "HostFacts", "Hypothesis", "Knob",
    "Launch", "LaunchOutcome", "ModelFacts", "Pivot", "PredictedEffect", "PredictionScore", "Record",
    "Remedy", "Rung", "Scope", "ServerConfig", "StabilityBoundary", "Stage", "Symptom", "Verdict",
    "VerdictKind", "Workload", "canonical_json", "fingerprint",
]  # fmt: skip
