"""What a run of a policy on worlds reports."""

from pydantic import NonNegativeFloat, NonNegativeInt

from moeagent.memory.records import Record


class WorldResult(Record):
    """One policy on one world."""

    name: str
    best_over_oracle: float
    """Noise-free value of the configuration that the policy returns over the oracle's; 0 when it crashes."""
    launches_to_95: int | None
    """Launches until one had a configuration worth 95 % of the oracle, itself included; None when never."""
    crashed: NonNegativeInt
    """Launches that died, hung or were refused."""
    gpu_hours: NonNegativeFloat
    """Virtual time on the machine times its GPUs."""
    false_gains: NonNegativeInt
    """Claims of a gain over a configuration that is in truth as good or better."""
    true_gains: NonNegativeInt


class PolicyReport(Record):
    """One policy on all worlds."""

    policy: str
    seed: int
    launches: int
    worlds: tuple[WorldResult, ...]
