"""Load: one rung of requests against a server, measured from outside the agent's own process."""

from moeagent.tools.load.figures import recompute
from moeagent.tools.load.runner import run_rung
from moeagent.tools.load.spec import (
    Arrivals,
    Prompt,
    RandomPrompts,
    RungOutcome,
    RungSpec,
    Slo,
    StopRule,
    Target,
    WarmUp,
)

__all__ = [
    "Arrivals", "Prompt", "RandomPrompts", "RungOutcome", "RungSpec", "Slo", "StopRule", "Target", "WarmUp",
    "recompute", "run_rung",
]  # fmt: skip
