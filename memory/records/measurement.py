"""What a load run measured. The JSON of a rung is the same in `moeagent bench --json` and in a run."""

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
    client: ClientHealth
    invalid: str = ""
    """Why the figures may not be used (client distorted, implausible, throttled); empty when they may."""
    raw: str | None = None
    """Hash of the per-request results in the run's load/ folder."""
    note: str = ""

    @property
    def usable(self) -> bool:
        """True when a verdict may rest on this rung."""
        return not self.invalid and self.completed > 0 and self.failed == 0 and self.output_tok_s is not None
