"""The start-up of one server: what it prints and when, and whether it gets ready, dies or hangs."""

import random
from dataclasses import dataclass
from datetime import datetime

from moeagent.tools.sim import logs
from moeagent.tools.sim.capture import MIN_CAPTURE_GIB, capture, piecewise
from moeagent.tools.sim.logs import LogLine
from moeagent.tools.sim.memory import MemoryPlan
from moeagent.tools.sim.script import EndOfStart, Script, check_rules, run_out_of_memory
from moeagent.tools.sim.settings import Settings
from moeagent.tools.sim.stages import MIN_LOAD_GIB, MIN_POOL_GIB, arguments, autotune, distributed, load, pool
from moeagent.tools.sim.world import World

WARMUP_S = 11.0


@dataclass(frozen=True)
class Startup:
    """A start-up as it will happen; times in seconds since the start of the process."""

    lines: tuple[LogLine, ...]
    memory: tuple[tuple[float, float], ...]
    """(time, GiB in use on every GPU of the server)."""
    ready_at: float | None
    """When the server is ready; None when it dies or hangs before."""
    bind_at: float | None
    """When the HTTP port opens."""
    exit_code: int | None = None
    hangs: bool = False


def _serve(script: Script, port: int) -> float:
    plan, args = script.plan, script.settings.args
    context = args["context_length"] or script.world.model.context
    script.uses(1.4 + plan.free - plan.after_capture)
    script.first_says(
        f"max_total_num_tokens={plan.kv_tokens}, chunked_prefill_size={args['chunked_prefill_size']}, "
        f"max_prefill_tokens={args['max_prefill_tokens']}, max_running_requests={plan.max_running}, "
        f"context_len={context}, available_gpu_mem={plan.after_capture:.2f} GB"
    )
    bind_at = script.now
    script.say("INFO:     Started server process [{pid}]")
    script.say("INFO:     Waiting for application startup.")
    script.say("Can not initialize OpenAIServingResponses, error: No module named 'openai_harmony'")
    script.say("INFO:     Application startup complete.")
    script.say(f"INFO:     Uvicorn running on http://{args['host']}:{port} (Press CTRL+C to quit)")
    script.wait(1.0)
    script.say('INFO:     127.0.0.1:40112 - "GET /model_info HTTP/1.1" 200 OK')
    script.first_says(
        logs.prefill_batch(sequences=1, new=7, cached=0, usage=0.0, running=0, queued=0, rate=0.0)
    )
    check_rules(script, "warmup")
    if plan.spare(1) < 0:
        run_out_of_memory(script, "warmup", "serve-oom", wanted=0.5, free=max(plan.after_capture, 0.05))
    script.wait(WARMUP_S if not args["skip_server_warmup"] else 0.0)
    script.say('INFO:     127.0.0.1:40118 - "POST /generate HTTP/1.1" 200 OK')
    script.say(logs.READY_LINE)
    return bind_at


def never_starts(world: World, settings: Settings, plan: MemoryPlan) -> bool:
    """True when the start-up cannot end in a ready server: the conditions of plan_startup without its log."""
    piecewise = settings.args["enable_piecewise_cuda_graph"]
    rules = (rule for rule in settings.rules if not rule.notice and (piecewise or rule.stage != "piecewise"))
    return bool(
        settings.refusal
        or next(rules, None)
        or settings.has_any(world.hidden.crashes)
        or plan.after_load < MIN_LOAD_GIB
        or plan.kv_tokens <= 0
        or plan.after_pool < MIN_POOL_GIB
        or (settings.graph_bs and plan.after_capture < MIN_CAPTURE_GIB)
        or plan.spare(1) < 0
    )


def plan_startup(
    world: World,
    settings: Settings,
    plan: MemoryPlan,
    *,
    rng: random.Random,
    start: datetime,
    port: int = 30000,
) -> Startup:
    """The start-up of these settings in this world; `rng` jitters its durations only."""
    script, bind_at = Script(world, settings, plan, rng, start), None
    try:
        for stage in (arguments, distributed, load, pool, autotune, capture, piecewise):
            stage(script)
        bind_at = script.now
        bind_at = _serve(script, port)
    except EndOfStart as end:
        lines = (*script.lines, *end.ending.lines)
        code = end.ending.exit_code
        reached = (
            bind_at if code is None or any("Uvicorn running" in line.text for line in script.lines) else None
        )
        return Startup(lines, tuple(script.memory), None, reached, code, hangs=code is None)
    return Startup(tuple(script.lines), tuple(script.memory), script.now, bind_at)
