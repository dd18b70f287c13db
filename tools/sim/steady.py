"""Closed-form behaviour of one configuration under a closed loop of requests: the virtual-time face's
arithmetic.

The step-by-step scheduler (scheduler.py) serves the real-process face; a test holds the two together.
"""

from dataclasses import dataclass

from moeagent.tools.sim.memory import MemoryPlan
from moeagent.tools.sim.settings import Settings
from moeagent.tools.sim.speed import Speed
from moeagent.tools.sim.world import World

DECAYED_RESERVE = 0.2
"""Share of a request's remaining output that the scheduler holds back once its estimate has settled, at
conservativeness 1."""
FULL_POOL_LOSS = 0.07
"""Time lost to waiting and recomputing while the pool is full, as the step-by-step scheduler shows it."""


@dataclass(frozen=True)
class Behaviour:
    """One concurrency, without noise; times in seconds."""

    running: int
    """Requests that decode together once the load has settled."""
    tokens: int
    """Tokens that they hold in the cache."""
    output_tok_s: float
    duration: float
    ttft_mean: float
    ttft_p50: float
    ttft_p90: float
    ttft_p99: float
    tpot: float
    itl: float
    """Between two tokens of one request while nothing is prefilled."""
    stall: float
    """Longest pause of a running request, while a prefill pass takes the GPU."""
    dies: bool
    """The batch does not fit into what lies outside the pool."""


@dataclass(frozen=True)
class Admission:
    """How many requests run together, and what over-commitment costs."""

    running: int
    waste: float
    """Share of work that retractions throw away."""


def admission(
    world: World, settings: Settings, plan: MemoryPlan, concurrency: int, shape: tuple[int, int]
) -> Admission:
    """The running batch at this concurrency, for requests of `shape` = (input, output) tokens."""
    groups = settings.groups
    limit = min(concurrency, plan.max_running * groups)
    held = DECAYED_RESERVE * float(settings.args["schedule_conservativeness"])
    before, after = shape
    footprint = before + after * (0.5 + 0.5 * min(held, 1.0))
    fits = max(int(plan.kv_tokens * groups / footprint), 1)
    if fits >= limit and limit * (before + after) <= plan.kv_tokens * groups:
        return Admission(limit, 0.0)
    short = max(world.hidden.retract_knee - held, 0.0) / world.hidden.retract_knee
    return Admission(min(limit, fits), FULL_POOL_LOSS + world.hidden.retract_cost * short**2)


def prefill_tokens(settings: Settings, running: int, input_len: int) -> int:
    """New tokens of one prefill pass while requests keep coming."""
    chunk = int(settings.args["chunked_prefill_size"])
    limit = chunk if chunk > 0 else int(settings.args["max_prefill_tokens"])
    return max(min(limit * settings.groups, running * input_len), 1)


def _interference(world: World, settings: Settings, concurrency: int, running: int) -> float:
    """Slow-down by prefills between decode steps; a smaller chunk and mixing spread it."""
    if concurrency <= 1:
        return 0.0
    crowd = min(running / 64.0, 1.0)
    gain = world.hidden.mixed_chunk if settings.args["enable_mixed_chunk"] and not world.hidden.flat else 0.0
    return world.hidden.interference * crowd - gain * crowd


def behave(
    world: World, settings: Settings, plan: MemoryPlan, speed: Speed, concurrency: int, requests: int,
    shape: tuple[int, int],
) -> Behaviour:  # fmt: skip
    """The behaviour at one concurrency, for `requests` requests of `shape` = (input, output) tokens."""
    before, after = shape
    admitted = admission(world, settings, plan, concurrency, shape)
    running = admitted.running
    step = speed.decode_step(running, before + after / 2.0)
    step *= 1.0 + _interference(world, settings, concurrency, running)
    steps = after / speed.tokens_per_step()
    pass_tokens = prefill_tokens(settings, running, before)
    pass_time = speed.prefill(pass_tokens)
    prefill_each = pass_time * before / pass_tokens
    waves = requests / running
    decoding = waves * steps * step * (1.0 + admitted.waste)
    partial = 0.0 if requests % running == 0 else 0.35 * steps * step
    duration = requests * prefill_each + decoding + partial
    first = max(prefill_each, speed.prefill(before))
    burst = first + prefill_each * max(running - 1, 0)
    waiting = max(concurrency - running, 0) / running * steps * step + burst
    queued = concurrency > running
    mean = 0.5 * (waiting if queued else burst + first)
    return Behaviour(
        running=running,
        tokens=int(running * (before + after / 2.0)),
        output_tok_s=requests * after / duration,
        duration=duration,
        ttft_mean=mean, ttft_p50=mean, ttft_p90=0.9 * (waiting if queued else burst) + 0.1 * first,
        ttft_p99=waiting if queued else burst,
        tpot=step / speed.tokens_per_step() + (prefill_each * running / after if running > 1 else 0.0) * 0.5,
        itl=step, stall=pass_time + step,
        dies=plan.spare(max(running // settings.groups, 1)) < 0,
    )  # fmt: skip
