"""A closed loop of so many clients in steady state: what runs, how fast, and what limits it."""

import math

from moeagent.memory.records import Record, Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.batch import Setting
from moeagent.tools.predict.gemm_time import compute_bound
from moeagent.tools.predict.records import Limit, MemoryTable
from moeagent.tools.predict.step_times import StepTimes

_MS = 1e3
_BOUND_SHARE = 0.35
_WHOLE = 1e-6
EQUAL_LENGTHS = ("random", "prefix")
"""Datasets whose requests all have the same lengths."""


class Served(Record):
    """One concurrency, before intervals. Times in milliseconds."""

    concurrency: int
    running: int
    output_tok_s: float
    ttft_ms: float
    tpot_ms: float
    limit: Limit
    why: str
    terms_ms: dict[str, float]


def serve(at: Setting, times: StepTimes, memory: MemoryTable, workload: Workload, concurrency: int) -> Served:
    """Steady state at one concurrency, over all replicas of the server."""
    replicas = at.settings.replicas
    clients = max(concurrency / replicas, 1)
    running, cap_why = _running(at, memory, workload, clients)
    terms = times.decode_ms(running)
    together = _clump(at, workload, running)
    step, prompt = sum(terms.values()), times.prefill_ms(together) / together
    stall = max(running - 1, 0) * _stall_ms(at, prompt, step) / workload.output_len
    tpot = step + stall
    ttft = (
        _ttft_ms(times, workload, clients, running, together, tpot)
        + tables.constant(f"first_token_ms_{at.settings.engine}")
        + step
    )
    per_request = ttft + (workload.output_len - 1) * tpot
    waiting = max(clients - running, 0) / running * per_request
    served = _finite(at, times, workload, running, per_request, workload.prompts(concurrency) / replicas)
    rate = served * workload.output_len * _MS * replicas
    limit, why = _limit(at, running, terms, stall / tpot, cap_why)
    return Served(
        concurrency=concurrency,
        running=round(running * replicas),
        output_tok_s=rate,
        ttft_ms=ttft + waiting,
        tpot_ms=tpot,
        limit=limit,
        why=why,
        terms_ms=terms | {"prefill of others": stall},
    )


def _finite(
    at: Setting, times: StepTimes, workload: Workload, running: float, per_request: float, prompts: float
) -> float:
    """Requests per millisecond of a run of so many prompts.

    Requests of equal lengths that wait for a place come in waves, and those of the last wave run as few.
    """
    if workload.dataset not in EQUAL_LENGTHS or prompts <= running:
        return running / per_request
    waves = math.floor(prompts / running + _WHOLE)
    rest = prompts - waves * running
    if rest < 1:
        return running / per_request
    step = sum(times.decode_ms(rest).values())
    last = times.prefill_ms(rest) + workload.output_len * step
    return prompts / (waves * per_request + min(last, per_request))


def _clump(at: Setting, workload: Workload, running: float) -> float:
    """Prompts that are prefilled together: equal lengths started together end together, and come again so."""
    return max(min(at.chunk // workload.input_len, running), 1)


def _stall_ms(at: Setting, prompt: float, step: float) -> float:
    """What one prompt costs those who decode: SGLang pauses them, vLLM takes them along in the forward."""
    if at.settings.engine != "vllm":
        return prompt
    return max(prompt - step, tables.constant("mixed_prefill_least") * prompt)


def _running(at: Setting, memory: MemoryTable, workload: Workload, clients: float) -> tuple[float, str]:
    """Requests that decode at once, and the cap that holds them there."""
    held = workload.input_len + _output_share(at) * workload.output_len
    by_pool = max(memory.kv_tokens * at.settings.attention_dp / held, 1)
    by_flag = memory.max_running * (at.settings.attention_dp if at.settings.engine == "vllm" else 1)
    if clients <= min(by_pool, by_flag):
        return clients, ""
    if by_pool < by_flag:
        return by_pool, f"kv capacity: {memory.kv_tokens:,} tokens hold {by_pool:.0f} requests"
    return float(by_flag), f"batch cap: {by_flag} requests may run"


def _output_share(at: Setting) -> float:
    """Of the output length, what a running request takes of the pool: half on average, and the reserve."""
    share = tables.constant("pool_output_share")
    if at.settings.engine != "sglang":
        return share
    eased = tables.constant("dp_attention_conservativeness") if at.settings.attention_dp > 1 else 1.0
    return min(0.5 + (share - 0.5) * at.settings.conservativeness * eased, 1.0)


def _ttft_ms(
    times: StepTimes, workload: Workload, clients: float, running: float, together: float, tpot: float
) -> float:
    """Own prefill, the wait for a prefill under way, and the burst at the start of the run."""
    prompt = times.prefill_ms(together)
    busy = min((running / together * prompt) / (workload.output_len * tpot), 0.9)
    wait = busy / (1 - busy) * prompt / 2
    burst = times.prefill_ms(min(clients, running)) / 2
    first_share = min(clients / workload.prompts(round(clients)), 1.0)
    return prompt + wait + first_share * max(burst - prompt, 0.0)


def _limit(
    at: Setting, running: float, terms: dict[str, float], stalled: float, cap: str
) -> tuple[Limit, str]:
    """The largest lever on this rung, in the order in which an engineer would look."""
    if cap:
        name: Limit = "kv capacity" if cap.startswith("kv") else "batch cap"
        return name, cap
    if stalled > _BOUND_SHARE:
        return (
            "prefill interference",
            f"other requests' prefills take {stalled:.0%} of each token's time",
        )
    groups: dict[Limit, float] = {
        "communication": terms.get("communication", 0),
        "host cpu": terms.get("host", 0),
        "kernel launch": terms.get("small kernels", 0),
        "memory bandwidth": sum(
            terms.get(t, 0) for t in ("projections", "attention", "experts", "mlp", "head")
        ),
    }
    name = max(groups, key=lambda key: groups[key])
    if name == "memory bandwidth" and compute_bound(at, running):
        return "compute", "compute: more rows per weight matrix than the ridge point"
    return name, f"{name}: {groups[name] / max(sum(terms.values()), 1e-9):.0%} of a decode step"
