"""What is sent to the server, and what counts as success."""

from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from moeagent.memory.records.base import Record

Metric = Literal["ttft", "tpot", "itl", "e2e", "output_tok_s", "goodput_rps", "error_rate"]
GoalName = Literal["max-throughput", "min-latency", "max-goodput", "min-cost"]


class Workload(Record):
    """One load: dataset, lengths in tokens, and the ladder of concurrencies."""

    dataset: Literal["random", "sharegpt", "prefix", "file"] = "random"
    dataset_path: str | None = None
    input_len: PositiveInt = 1024
    output_len: PositiveInt = 1024
    ladder: tuple[PositiveInt, ...] = (1, 10, 256, 1024)
    prompts_per_slot: PositiveFloat = 2.0
    """Requests of a rung = concurrency x this, at least min_prompts."""
    min_prompts: PositiveInt = 4
    seed: int = 0
    body: dict[str, Any] = Field(default_factory=dict)
    """Laid over the body of every request: how the clients sample, such as temperature, top_p or seed. Greedy
    when not given."""

    def prompts(self, concurrency: int) -> int:
        """Number of requests of the rung at this concurrency."""
        return max(self.min_prompts, round(concurrency * self.prompts_per_slot))


class Constraint(Record):
    """A bound on one metric: latencies in seconds at most, throughput at least, error rate 0..1 at most."""

    metric: Metric
    percentile: Literal["mean", "p50", "p90", "p95", "p99"] | None = None
    bound: float


class Goal(Record):
    """What is optimised, and what must hold meanwhile."""

    name: GoalName = "max-throughput"
    constraints: tuple[Constraint, ...] = ()
    min_effect: float = Field(default=0.03, gt=0, lt=1)
    """Smallest relative effect that is worth a change of the configuration."""

    @property
    def higher_is_better(self) -> bool:
        """The direction of the goal's score."""
        return self.name in ("max-throughput", "max-goodput")
