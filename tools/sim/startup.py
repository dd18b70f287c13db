"""The start-up of one server: what it prints and when, and whether it gets ready, dies or hangs."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from moeagent.tools.sim import failure, logs
from moeagent.tools.sim.catalogue import server_args_line
from moeagent.tools.sim.failure import Ending, argument_failure, startup_failure
from moeagent.tools.sim.logs import LogLine, rank_tag
from moeagent.tools.sim.memory import MemoryPlan
from moeagent.tools.sim.rules import Rule
from moeagent.tools.sim.settings import Settings
from moeagent.tools.sim.world import World

IMPORT_S, DIST_S, SHARD_S, POOL_S, AUTOTUNE_S, CAPTURE_ONE_S, WARMUP_S = 14.0, 9.0, 2.2, 1.2, 34.0, 4.0, 11.0
COMPILE_ONE_S = 12.0
BAD_TILES = (("M256", 0), ("M256", 2), ("M128", 2))
SKIPS_PER_RANK = 12
MIN_LOAD_GIB, MIN_POOL_GIB, MIN_CAPTURE_GIB = 0.3, 0.05, 0.1
"""What must stay free for a stage to succeed."""


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


@dataclass
class _Script:
    world: World
    settings: Settings
    plan: MemoryPlan
    rng: random.Random
    start: datetime
    now: float = 0.0
    lines: list[LogLine] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        self.now += seconds * self.rng.uniform(0.93, 1.08)

    def say(self, text: str, tag: str | None = "") -> None:
        self.lines.append(LogLine(self.now, text, tag))

    def tag(self, rank: int) -> str:
        tag = rank_tag(rank % self.settings.tp, expert_parallel=self.settings.expert_parallel)
        return f"DP{rank // self.settings.tp} {tag}" if self.settings.replicas > 1 else tag

    def ranks_say(self, text: str) -> None:
        order = list(range(self.settings.ranks))
        self.rng.shuffle(order)
        for rank in order:
            self.say(text, self.tag(rank))

    def first_says(self, text: str) -> None:
        self.say(text, self.tag(0))

    def uses(self, gib: float) -> None:
        self.memory.append((self.now, gib))

    def avail(self, used_after_start: float) -> str:
        return f"{self.plan.free - used_after_start:.2f}"


class _End(Exception):  # noqa: N818 - the end of a script, not a fault
    """The start-up ends here."""

    def __init__(self, ending: Ending) -> None:
        super().__init__()
        self.ending = ending


def _fail(script: _Script, stage: Any, trace: str, values: Any, **options: Any) -> None:
    if stage == "args":
        raise _End(argument_failure(script.now, trace, values))
    raise _End(startup_failure(script.now, script.settings, stage, trace, values, **options))


def _check_rules(script: _Script, stage: str) -> None:
    refusal = script.settings.refusal
    if refusal and refusal.stage == stage:
        _fail(script, stage, refusal.trace, refusal.values)
    for rule in script.settings.rules:
        if rule.stage == stage and not rule.notice:
            _apply(script, rule)


def _check_crashes(script: _Script) -> None:
    args = script.settings.args
    if any(f"{name}={args.get(name)}" in script.world.hidden.crashes for name in args):
        _fail(script, "capture" if script.settings.graph_bs else "warmup", "illegal-access", args)


def _apply(script: _Script, rule: Rule) -> None:
    if rule.hang:
        raise _End(Ending((), None))
    values = {
        **script.settings.args, "capability": script.world.machine.capability,
        "quant_method": script.world.model.quant_method,
    }  # fmt: skip
    assert rule.trace is not None
    noisy = rule.linger_s > 10
    _fail(script, rule.stage, rule.trace, values, ranks=rule.ranks, linger_s=rule.linger_s, noisy=noisy)


def _oom(script: _Script, stage: str, trace: str, *, wanted: float, free: float) -> None:
    pooled = stage in ("capture", "autotune")
    error = failure.out_of_memory(
        script.world, script.plan, gpu=0, wanted=wanted, free=max(free, 0.02), pooled=pooled
    )
    _fail(script, stage, trace, {"oom": error})


def _arguments(script: _Script) -> None:
    world = script.world
    script.say(f"moeagent simulated machine: world={world.name} seed={world.seed}; nothing here ran on a GPU")
    _check_rules(script, "args")
    script.wait(IMPORT_S)
    for notice in script.settings.notices[:1]:
        script.say(f"WARNING server_args.py: {notice}")
    for notice in script.settings.notices[1:]:
        script.say(notice)
    script.say(server_args_line(script.settings.args))
    script.say(
        "Ignore import error when loading sglang.srt.models.midashenglm: cannot import name "
        "'MiDashengLMConfig'",
        "",
    )


def _distributed(script: _Script) -> None:
    script.ranks_say("Init torch distributed begin.")
    script.wait(DIST_S)
    _check_rules(script, "dist")
    if script.settings.ranks > 1:
        for rank in range(2):
            peers = script.settings.ranks - 1
            script.say(
                f"[Gloo] Rank {rank} is connected to {peers} peer ranks. Expected number of connected peer "
                "ranks is : "
                f"{peers}",
                None,
            )
    script.first_says("sglang is using nccl==2.28.3")
    script.ranks_say(f"Init torch distributed ends. elapsed={DIST_S:.2f} s, mem usage=0.92 GB")
    script.uses(1.4)


def _load(script: _Script) -> None:
    plan, model, shards = script.plan, script.world.model, script.world.model.shards
    script.ranks_say(f"Load weight begin. avail mem={script.avail(0)} GB")
    script.uses(2.0)
    began = script.now
    if plan.after_load < MIN_LOAD_GIB:
        script.wait(SHARD_S * shards * 0.6)
        _oom(script, "load", "load-oom", wanted=0.75, free=0.4)
    for done in range(shards + 1):
        if done % max(shards // 12, 1) == 0 or done == shards:
            share = done / shards
            spent = int(script.now - began)
            script.say(
                f"Loading safetensors checkpoint shards: {share:4.0%} Completed | {done}/{shards} "
                f"[{spent // 60:02d}:{spent % 60:02d}<00:{int((1 - share) * 40):02d},  {SHARD_S:.2f}s/it]",
                None,
            )
            script.uses(2.0 + plan.weights * share)
        script.wait(SHARD_S)
    _check_rules(script, "load")
    dtype = "torch.bfloat16"
    script.ranks_say(
        f"Load weight end. elapsed={script.now - began:.2f} s, type={model.architecture}, dtype={dtype}, "
        f"avail mem={plan.after_load:.2f} GB, mem usage={plan.weights:.2f} GB."
    )
    script.ranks_say(
        f"Using KV cache dtype: torch.{_torch_name(str(script.settings.args['kv_cache_dtype']))}"
    )


def _torch_name(dtype: str) -> str:
    return {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "bf16": "bfloat16"}.get(dtype, dtype)


def _pool(script: _Script) -> None:
    plan, args = script.plan, script.settings.args
    script.wait(POOL_S)
    _check_rules(script, "pool")
    if plan.kv_tokens <= 0:
        expert = script.settings.expert_parallel
        _fail(
            script, "pool", "not-enough-memory", args, ranks="some",
            linger_s=600.0 if expert else 3.0, noisy=expert,
        )  # fmt: skip
    if plan.after_pool < MIN_POOL_GIB:
        _oom(script, "pool", "pool-oom", wanted=plan.request_pool, free=plan.after_pool + plan.request_pool)
    half = plan.pool / 2.0
    split = (
        f"KV size: {plan.pool:.2f} GB"
        if script.world.model.is_mla
        else f"K size: {half:.2f} GB, V size: {half:.2f} GB"
    )
    script.ranks_say(f"KV Cache is allocated. #tokens: {plan.kv_tokens}, {split}")
    script.ranks_say(f"Memory pool end. avail mem={plan.after_pool:.2f} GB")
    script.uses(1.4 + plan.free - plan.after_pool)


def _autotune(script: _Script) -> None:
    if script.settings.args["moe_runner_backend"] != "flashinfer_cutlass" or not script.world.model.experts:
        return
    script.first_says("Running FlashInfer autotune...")
    script.say(
        f"{_clock(script)} - INFO - autotuner.py:256 - flashinfer.jit: [Autotuner]: Autotuning process "
        "starts ...",
        None,
    )
    _check_rules(script, "autotune")
    if script.world.machine.capability == "12.0" and script.world.model.quant == "nvfp4":
        _skipped_tactics(script)
    script.wait(AUTOTUNE_S)
    script.say(
        f"{_clock(script)} - INFO - autotuner.py:262 - flashinfer.jit: [Autotuner]: Autotuning process ends",
        None,
    )
    script.first_says("FlashInfer autotune completed.")


def _clock(script: _Script) -> str:
    moment = script.start + timedelta(seconds=script.now)
    return moment.strftime("%Y-%m-%d %H:%M:%S,") + f"{moment.microsecond // 1000:03d}"


def _skipped_tactics(script: _Script) -> None:
    for tactic in range(SKIPS_PER_RANK):
        tile, group = BAD_TILES[tactic % len(BAD_TILES)]
        for rank in range(script.settings.ranks):
            text = logs.tactic_skipped(
                clock=_clock(script),
                rank_object=0x7F11C40B22D0 + rank * 0x9000,
                tactic=tactic,
                tile=tile,
                group=group,
            )
            script.say(text, None)
            process = f"sglang::scheduler_{script.tag(rank).replace(' ', '_')}"
            for frame in logs.native_frames(process, 24, rank * 31 + tactic):
                script.say(frame, None)
        script.wait(0.4)


def capture_sizes(largest: int) -> list[int]:
    """Batch sizes that the engine captures up to the largest."""
    sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16), *range(544, 4097, 32)]
    return [bs for bs in sizes if bs <= largest] or [largest]


def _capture(script: _Script) -> None:
    plan, settings = script.plan, script.settings
    if settings.graph_bs == 0:
        _check_rules(script, "capture")
        _check_crashes(script)
        return
    begin = (
        f"Capture cuda graph begin. This can take up to several minutes. avail mem={plan.after_pool:.2f} GB"
    )
    script.ranks_say(begin)
    sizes = capture_sizes(settings.graph_bs)
    script.first_says(f"Capture cuda graph bs {sizes}")
    script.wait(3.0)
    _check_rules(script, "capture")
    _check_crashes(script)
    began, each = script.now, COMPILE_ONE_S if settings.args["enable_torch_compile"] else CAPTURE_ONE_S
    fails = plan.after_capture < MIN_CAPTURE_GIB
    for index, bs in enumerate(reversed(sizes)):
        share = index / len(sizes)
        left = plan.after_pool - plan.graphs * share
        spent = int(script.now - began)
        if index % 8 == 0:
            script.say(
                f"Capturing batches (bs={bs} avail_mem={max(left, 0.01):.2f} GB): "
                f"{share:4.0%}|{'█' * int(share * 10):<10}| "
                f"{index}/{len(sizes)} [{spent // 60:02d}:{spent % 60:02d}<00:40,  "
                f"{each:.2f}s/it]",
                None,
            )
        if fails and index == len(sizes) // 2:
            _oom(script, "capture", "capture-oom", wanted=0.62, free=0.2)
        script.wait(each)
    script.ranks_say(
        f"Capture cuda graph end. Time elapsed: {script.now - began:.2f} s. mem usage={plan.graphs:.2f} GB. "
        f"avail mem={plan.after_capture:.2f} GB."
    )
    if settings.speculative:
        script.first_says(
            "Capture draft cuda graph begin. This can take up to several minutes. avail "
            f"mem={plan.after_capture:.2f} GB"
        )
        script.wait(20.0)
        script.first_says(
            "Capture draft cuda graph end. Time elapsed: 20.00 s. mem usage=0.00 GB. avail "
            f"mem={plan.after_capture:.2f} GB."
        )


def _piecewise(script: _Script) -> None:
    if not script.settings.args["enable_piecewise_cuda_graph"]:
        return
    if any(rule.stage == "piecewise" and rule.notice for rule in script.settings.rules):
        return
    script.ranks_say(f"Capture piecewise CUDA graph begin. avail mem={script.plan.after_capture:.2f} GB")
    script.first_says("Compiling num tokens (num_tokens=4096)")
    script.wait(25.0)
    _check_rules(script, "piecewise")
    script.wait(60.0)
    script.ranks_say(
        "Capture piecewise CUDA graph end. Time elapsed: 85.00 s. mem usage=0.00 GB. avail "
        f"mem={script.plan.after_capture:.2f} GB."
    )


def _serve(script: _Script, port: int) -> float:
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
    _check_rules(script, "warmup")
    if plan.spare(1) < 0:
        _oom(script, "warmup", "serve-oom", wanted=0.5, free=max(plan.after_capture, 0.05))
    script.wait(WARMUP_S if not args["skip_server_warmup"] else 0.0)
    script.say('INFO:     127.0.0.1:40118 - "POST /generate HTTP/1.1" 200 OK')
    script.say("The server is fired up and ready to roll!")
    return bind_at


def never_starts(world: World, settings: Settings, plan: MemoryPlan) -> bool:
    """True when the start-up cannot end in a ready server: the conditions of plan_startup without its log."""
    piecewise = settings.args["enable_piecewise_cuda_graph"]
    rules = (rule for rule in settings.rules if not rule.notice and (piecewise or rule.stage != "piecewise"))
    crashes = any(f"{name}={value}" in world.hidden.crashes for name, value in settings.args.items())
    return bool(
        settings.refusal
        or next(rules, None)
        or crashes
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
    script, bind_at = _Script(world, settings, plan, rng, start), None
    try:
        for stage in (_arguments, _distributed, _load, _pool, _autotune, _capture, _piecewise):
            stage(script)
        bind_at = script.now
        bind_at = _serve(script, port)
    except _End as end:
        lines = (*script.lines, *end.ending.lines)
        code = end.ending.exit_code
        reached = (
            bind_at if code is None or any("Uvicorn running" in line.text for line in script.lines) else None
        )
        return Startup(lines, tuple(script.memory), None, reached, code, hangs=code is None)
    return Startup(tuple(script.lines), tuple(script.memory), script.now, bind_at)
