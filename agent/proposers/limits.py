"""Names what binds now, from measured evidence: a pure function over rungs, the configuration and facts.

Little's law carries most of it: in a closed loop, output tok/s x time per output token is the number of
streams that decode, and the rest of the concurrency waits or prefills.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from moeagent.agent.proposers.book import LimitName
from moeagent.agent.proposers.expression import Value
from moeagent.memory.records import Record, Rung

# All-reduce of 8 GPUs, start-up and bus bandwidth, as measured with NCCL's defaults on PCIe 5 (24.6 us,
# 24.7 GB/s) and with NVLink on H200 (3.5 us, 1 ms for 256 MiB): aiconfigurator-core 0.12.0, Apache-2.0.
_LINKS = {False: (24.6e-6, 24.7e9), True: (3.5e-6, 450e9)}
_ALL_REDUCES_PER_LAYER = 2
_BYTES_PER_VALUE = 2
WAITING_SHARE = 0.15
"""A smaller share of streams that do not decode is normal admission and prefill, not a limit."""
FLAT_GAIN = 0.15
"""Throughput that grows by less than this for twice the streams or more has reached the machine's limit."""


PREFILL_MOST = 0.6
"""Prompts that are read together cost less than one by one: the estimate from a lone prompt is a bound."""


class Limit(Record):
    """One thing that binds."""

    name: LimitName
    strength: float = Field(ge=0, le=1)
    """About the share of the time that it takes."""
    evidence: str


class Situation(NamedTuple):
    """What the limits are read from."""

    rungs: Sequence[Rung]
    """Usable rungs of the incumbent, rising."""
    facts: Mapping[str, Value | None]
    cap: float | None
    """Running sequences that the configuration admits, as far as it is known."""
    eager: bool
    """CUDA graphs are switched off."""
    distorted: str
    """Why the client's figures may not be used, empty when they may."""
    latency: bool
    """The goal looks at the lowest rung."""

    @property
    def rung(self) -> Rung:
        """The rung that the goal looks at."""
        return self.rungs[0] if self.latency else self.rungs[-1]


def find_limits(situation: Situation) -> tuple[Limit, ...]:
    """Everything that binds, the strongest first; without a usable rung only the client can be named."""
    if not situation.rungs:
        return tuple(x for x in (_client(situation),) if x is not None)
    found = (signal(situation) for signal in _SIGNALS)
    return tuple(sorted((x for x in found if x is not None), key=lambda x: -x.strength))


def decoding(rung: Rung) -> float | None:
    """Mean number of streams that decode, None without TPOT."""
    if rung.tpot_ms is None or rung.output_tok_s is None:
        return None
    return min(rung.output_tok_s * rung.tpot_ms.mean / 1000, rung.concurrency)


def _waiting(rung: Rung) -> float:
    streams = decoding(rung)
    return 0.0 if streams is None else 1 - streams / rung.concurrency


def _batch_cap(s: Situation) -> Limit | None:
    wanted = s.rung.concurrency
    if s.cap is None or s.cap >= wanted:
        return None
    if s.rung.tpot_ms is not None and _waiting(s.rung) < WAITING_SHARE:
        return None
    return Limit(
        name="batch-cap",
        strength=1 - s.cap / wanted,
        evidence=f"{wanted} streams ask, the configuration runs {s.cap:g} at a time",
    )


def _kv_capacity(s: Situation) -> Limit | None:
    room, wanted = s.facts["kv_seqs"], s.rung.concurrency
    if not isinstance(room, int | float) or room >= wanted or _waiting(s.rung) < WAITING_SHARE:
        return None
    if s.cap is not None and s.cap <= room:
        return None
    return Limit(
        name="kv-capacity",
        strength=1 - room / wanted,
        evidence=f"the KV pool holds {room:.0f} sequences of full length, {wanted} streams ask",
    )


def _prefill(s: Situation) -> Limit | None:
    first, rung = s.rungs[0], s.rung
    if first.ttft_ms is None or rung.output_tok_s is None:
        return None
    output_len = float(s.facts["output_len"] or 1)
    share = min(rung.output_tok_s / output_len * first.ttft_ms.p50 / 1000, PREFILL_MOST)
    if share < WAITING_SHARE or (rung is not first and _waiting(rung) < WAITING_SHARE / 3):
        return None
    return Limit(
        name="prefill",
        strength=share,
        evidence=f"prefills take about {share:.0%} of the time at concurrency {rung.concurrency}",
    )


def _communication(s: Situation) -> Limit | None:
    gpus, layers, hidden, nvlink = (s.facts[k] for k in ("gpus", "layers", "hidden", "nvlink"))
    rung = s.rung
    if not gpus or int(gpus) < 2 or not layers or not hidden or rung.tpot_ms is None:
        return None
    start_s, bytes_per_s = _LINKS[bool(nvlink)]
    tokens = decoding(rung) or rung.concurrency
    wire = 2 * (int(gpus) - 1) / int(gpus) * tokens * float(hidden) * _BYTES_PER_VALUE
    step_s = _ALL_REDUCES_PER_LAYER * float(layers) * (start_s + wire / bytes_per_s)
    share = min(step_s * 1000 / rung.tpot_ms.mean, 0.9)
    if share < 0.05:
        return None
    return Limit(
        name="communication",
        strength=share,
        evidence=f"all-reduces of {tokens:.0f} tokens over {'NVLink' if nvlink else 'PCIe'} would take "
        f"{step_s * 1000:.1f} ms of a step of {rung.tpot_ms.mean:.1f} ms at NCCL's default speed",
    )


def _growth(s: Situation) -> float | None:
    """Relative gain of the last rung over the one before."""
    if len(s.rungs) < 2:
        return None
    before, last = s.rungs[-2].output_tok_s, s.rungs[-1].output_tok_s
    return last / before - 1 if before and last else None


def _compute(s: Situation) -> Limit | None:
    growth = _growth(s)
    if s.latency or growth is None or growth > FLAT_GAIN or _waiting(s.rung) > 0.5:
        return None
    return Limit(
        name="compute",
        strength=0.5,
        evidence=f"{s.rungs[-2].concurrency} to {s.rungs[-1].concurrency} streams bring {growth:+.0%}",
    )


def _memory_bandwidth(s: Situation) -> Limit | None:
    growth = _growth(s)
    few = s.rung.concurrency <= 16
    if not few and (growth is None or growth < 0.5):
        return None
    return Limit(
        name="memory-bandwidth",
        strength=0.6 if few else 0.3,
        evidence="few streams share each read of the weights"
        if few
        else f"throughput still grows with the streams ({growth:+.0%} at the last rung)",
    )


def _host_cpu(s: Situation) -> Limit | None:
    if s.facts["gpus"] == 0:
        return Limit(name="host-cpu", strength=0.6, evidence="the model runs on the CPU")
    if s.eager:
        return Limit(name="host-cpu", strength=0.6, evidence="every kernel is launched one by one: no graphs")
    return None


def _client(s: Situation) -> Limit | None:
    return Limit(name="client", strength=0.5, evidence=s.distorted) if s.distorted else None


_SIGNALS: tuple[Callable[[Situation], Limit | None], ...] = (
    _batch_cap,
    _kv_capacity,
    _prefill,
    _communication,
    _compute,
    _memory_bandwidth,
    _host_cpu,
    _client,
)
