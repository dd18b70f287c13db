"""What a load run measured. The JSON of a rung is the same in `moeagent bench --json` and in a run."""

from typing import Literal

from pydantic import Field

from moeagent.memory.records.base import Record


class Distribution(Record):
    """Milliseconds over the requests (or tokens, for ITL) of one rung."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


class ClientHealth(Record):
    """The load generator's own state: a distorting client makes the rung invalid."""

    cpu_s: float
    loop_lag_ms: float
    """p99 lateness of a 10 ms timer in the client's event loop."""
    valid: bool
    why: str = ""
    core_use: float | None = None
    """CPU seconds and seconds of waiting for a core, per second of the busiest process: 1.0 is saturated."""
    send_late_ms: float | None = None
    """p99 of actual minus intended send: after the answer before it (closed loop), or the arrival time."""
    crowded_reads: float | None = None
    """Share of events with text that were read together with an earlier one."""
    achieved: float | None = None
    """Share of the asked concurrency that the client kept in flight while it had requests left."""
    processes: int = 1
    loop: str | None = None
    """Module of the event loop: uvloop or asyncio."""
    spoils: Literal["", "latency", "all"] = ""
    """What the distortion makes unusable: late reads spoil latencies, a load not kept up spoils all."""


class GpuLoad(Record):
    """One GPU while a rung was measured; None where the driver does not say."""

    gpu: int
    power_w: float | None = None
    power_max_w: float | None = None
    sm_mhz: float | None = None
    """Mean; throttling shows in the least one."""
    sm_mhz_min: float | None = None
    mem_mhz: float | None = None
    use_percent: float | None = None
    """Share of the time in which a kernel ran."""
    memory_mib: float | None = None
    """The most that was in use."""
    celsius: float | None = None
    """The most."""
    held_by: dict[str, float] = Field(default_factory=dict)
    """Share of the samples, 0..1, in which each reason held the clocks down: power cap, thermal, ..."""


class GpuSamples(Record):
    """All GPUs of the host, sampled about once a second in the rung's window."""

    moments: int
    """How often each GPU was looked at."""
    gpus: tuple[GpuLoad, ...]
    power_w: float | None = None
    """Mean over the window of all GPUs together; None when one of them does not say."""
    power_max_w: float | None = None
    throttled: str = ""
    """Why the rung is spoilt: which GPU was slowed down by what; empty when none was."""
    raw: str | None = None
    """Hash of the samples in the run's load/ folder."""


class Rung(Record):
    """One concurrency of the ladder. A metric that was not measured is None, never 0."""

    concurrency: int
    completed: int
    failed: int
    failures_by_kind: dict[str, int] = Field(default_factory=dict)
    duration_s: float
    """First send to last token."""
    output_tok_s: float | None
    total_tok_s: float | None
    ttft_ms: Distribution | None = None
    itl_ms: Distribution | None = None
    tpot_ms: Distribution | None = None
    e2e_ms: Distribution | None = None
    goodput_rps: float | None = None
    energy_j: float | None = None
    """Of all GPUs of the host: mean power times duration_s; None where the power is not known."""
    client: ClientHealth
    invalid: str = ""
    """Why the figures may not be used (client distorted, implausible, throttled); empty when they may."""
    raw: str | None = None
    """Hash of the per-request results in the run's load/ folder."""
    note: str = ""
    requests: int | None = None
    """Requests that were planned; completed + failed is less when the rung stopped early."""
    failure_examples: dict[str, str] = Field(default_factory=dict)
    """The first message of each kind of failure, as the server or the network gave it."""
    prompt_tokens: int | None = None
    """Of the complete requests, by the server's usage records."""
    output_tokens: int | None = None
    """Of the complete requests: the only ones that are credited."""
    delivered_tok_s: float | None = None
    """Output tokens of all requests, failed ones included, as far as they were received."""
    steady_output_tok_s: float | None = None
    """While at least 95 % of the concurrency was in flight."""
    tokens_per_event: float | None = None
    """Above 1.0 the server sends several tokens at once, and ITL is the gap divided by them."""
    cache_hit_rate: float | None = None
    """Cached part of the prompt tokens, where the server reports it."""
    request_rate: float | None = None
    """Requests per second offered in open loop; None in closed loop."""
    stalled: float | None = None
    """Part of the window, 0..1, in which the server stood still; None where it cannot be told."""
    gpu: GpuSamples | None = None
    """None when the host's GPUs were not sampled, or say nothing."""

    def spoilt(self, why: str) -> "Rung":
        """The rung with one more reason not to use its figures; itself when there is none."""
        if not why:
            return self
        return self.model_copy(update={"invalid": "; ".join(filter(None, (self.invalid, why)))})

    @property
    def throttled(self) -> str:
        """Why the GPUs spoilt the rung; empty when they did not."""
        return self.gpu.throttled if self.gpu else ""

    @property
    def energy_per_token_j(self) -> float | None:
        """Joules of all GPUs for each output token of the complete requests; None where not known."""
        if self.energy_j is None or not self.output_tok_s or self.duration_s <= 0:
            return None
        return self.energy_j / (self.output_tok_s * self.duration_s)

    @property
    def throughput_invalid(self) -> str:
        """Why not even the throughput may be used; empty when it may."""
        only_latencies = self.invalid == self.client.why and self.client.spoils == "latency"
        return "" if only_latencies else self.invalid

    @property
    def usable(self) -> bool:
        """True when a verdict on throughput may rest on this rung; latencies need an empty `invalid` too."""
        measured = self.completed > 0 and self.output_tok_s is not None
        return measured and self.failed == 0 and not self.throughput_invalid
