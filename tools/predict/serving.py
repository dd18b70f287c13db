"""A closed loop of so many clients in steady state: what runs, how fast, and what limits it."""

from moeagent.memory.records import Record, Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.engine_rules import Defaults
from moeagent.tools.predict.forward import Batch, Setting, forward_us
from moeagent.tools.predict.records import Limit, MemoryTable
from moeagent.tools.predict.speculation import accepted_tokens, draft_us

_MS = 1e3
_BOUND_SHARE = 0.35


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


def serve(
    at: Setting, memory: MemoryTable | None, chosen: Defaults, workload: Workload, concurrency: int
) -> Served:
    """Steady state at one concurrency, over all replicas of the server."""
    replicas = at.settings.replicas
    clients = max(concurrency / replicas, 1)
    running, cap_why = _running(at, memory, workload, clients)
    step, terms = decode_step_ms(at, running, workload)
    prompt = prefill_ms(at, chosen, workload, prompts=1)
    stall = max(running - 1, 0) * _stall_ms(at, prompt, step) / workload.output_len
    tpot = step + stall
    ttft = _ttft_ms(at, chosen, workload, clients, running, prompt, step, tpot)
    per_request = ttft + (workload.output_len - 1) * tpot
    waiting = max(clients - running, 0) / running * per_request
    rate = running * workload.output_len / per_request * _MS * replicas
    limit, why = _limit(at, terms, stall, tpot, cap_why)
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


def decode_step_ms(at: Setting, running: float, workload: Workload) -> tuple[float, dict[str, float]]:
    """Milliseconds per output token of one sequence, and the terms that it is the sum of."""
    settings = at.settings
    context = workload.input_len + workload.output_len / 2
    sequences = max(running / settings.attention_dp / settings.pp, 1)
    batch = Batch(sequences=sequences, tokens_each=settings.draft_tokens, context=context)
    terms = forward_us(at, batch)
    if settings.spec_algorithm is not None:
        terms["draft"] = draft_us(at, batch)
    tokens = accepted_tokens(settings)
    if settings.pp > 1 and running > 1:
        tokens *= tables.constant("pipeline_efficiency")
    scaled = {name: us / tokens / _MS for name, us in terms.items() if us}
    return sum(scaled.values()), scaled


def _stall_ms(at: Setting, prompt: float, step: float) -> float:
    """What one prompt costs those who decode: SGLang pauses them, vLLM takes them along in the forward."""
    if at.settings.engine != "vllm":
        return prompt
    return max(prompt - step, tables.constant("mixed_prefill_least") * prompt)


def prefill_ms(at: Setting, chosen: Defaults, workload: Workload, *, prompts: float) -> float:
    """Milliseconds to prefill so many prompts together, in chunks."""
    total = prompts * workload.input_len
    whole, rest = divmod(total, chosen.chunk)
    dp = at.settings.attention_dp
    time = 0.0
    for index in range(int(whole)):
        time += _chunk_us(at, chosen.chunk / dp, min(workload.input_len, (index + 1) * chosen.chunk))
    if rest:
        time += _chunk_us(at, rest / dp, workload.input_len)
    return time / _MS


def _chunk_us(at: Setting, tokens: float, context: float) -> float:
    sequences = max(tokens / context, 1.0)
    batch = Batch(sequences=sequences, tokens_each=tokens / sequences, context=context, prefill=True)
    return sum(forward_us(at, batch).values())


def _running(
    at: Setting, memory: MemoryTable | None, workload: Workload, clients: float
) -> tuple[float, str]:
    """Requests that decode at once, and the cap that holds them there."""
    if memory is None:
        return clients, ""
    held = workload.input_len + tables.constant("pool_output_share") * workload.output_len
    by_pool = max(memory.kv_tokens * at.settings.attention_dp / held, 1)
    by_flag = memory.max_running * (at.settings.attention_dp if at.settings.engine == "vllm" else 1)
    if clients <= min(by_pool, by_flag):
        return clients, ""
    if by_pool < by_flag:
        return by_pool, f"kv capacity: {memory.kv_tokens:,} tokens hold {by_pool:.0f} requests"
    return float(by_flag), f"batch cap: {by_flag} requests may run"


def _ttft_ms(
    at: Setting,
    chosen: Defaults,
    workload: Workload,
    clients: float,
    running: float,
    prompt: float,
    step: float,
    tpot: float,
) -> float:
    """Own prefill, one step, the wait for a prefill under way, and the burst at the start of the run."""
    busy = min((running * prompt) / (workload.output_len * tpot), 0.9)
    wait = busy / (1 - busy) * prompt / 2
    burst = prefill_ms(at, chosen, workload, prompts=min(clients, running)) / 2
    first_share = min(clients / workload.prompts(round(clients)), 1.0)
    fixed = tables.constant(f"first_token_ms_{at.settings.engine}")
    return fixed + prompt + step + wait + first_share * max(burst - prompt, 0.0)


def _limit(at: Setting, terms: dict[str, float], stall: float, tpot: float, cap: str) -> tuple[Limit, str]:
    """The largest lever on this rung, in the order in which an engineer would look."""
    if cap:
        name: Limit = "kv capacity" if cap.startswith("kv") else "batch cap"
        return name, cap
    if stall > _BOUND_SHARE * tpot:
        return (
            "prefill interference",
            f"other requests' prefills take {stall / tpot:.0%} of each token's time",
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
    return name, f"{name}: {groups[name] / max(sum(terms.values()), 1e-9):.0%} of a decode step"
