"""The stages of a start-up from the arguments to the autotuner, each with its lines and its ways to fail."""

from moeagent.tools.sim import logs
from moeagent.tools.sim.catalogue import server_args_line
from moeagent.tools.sim.script import Script, check_rules, fail, run_out_of_memory

IMPORT_S, DIST_S, SHARD_S, POOL_S, AUTOTUNE_S = 14.0, 9.0, 2.2, 1.2, 34.0
BAD_TILES = (("M256", 0), ("M256", 2), ("M128", 2))
SKIPS_PER_RANK = 12
MIN_LOAD_GIB, MIN_POOL_GIB = 0.3, 0.05
"""What must stay free for a stage to succeed."""


def arguments(script: Script) -> None:
    """The parent: its marks, its notices, the dump of its arguments."""
    world = script.world
    script.say(f"moeagent simulated machine: world={world.name} seed={world.seed}; nothing here ran on a GPU")
    check_rules(script, "args")
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


def distributed(script: Script) -> None:
    """Process groups."""
    script.ranks_say("Init torch distributed begin.")
    script.wait(DIST_S)
    check_rules(script, "dist")
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


def load(script: Script) -> None:
    """Weights."""
    plan, model, shards = script.plan, script.world.model, script.world.model.shards
    script.ranks_say(f"Load weight begin. avail mem={script.plan.free:.2f} GB")
    script.uses(2.0)
    began = script.now
    if plan.after_load < MIN_LOAD_GIB:
        script.wait(SHARD_S * shards * 0.6)
        run_out_of_memory(script, "load", "load-oom", wanted=0.75, free=0.4)
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
    check_rules(script, "load")
    dtype = "torch.bfloat16"
    script.ranks_say(
        f"Load weight end. elapsed={script.now - began:.2f} s, type={model.architecture}, dtype={dtype}, "
        f"avail mem={plan.after_load:.2f} GB, mem usage={plan.weights:.2f} GB."
    )
    if plan.draft:
        script.ranks_say(f"Load weight begin. avail mem={plan.after_load:.2f} GB")
        script.ranks_say(
            f"Load weight end. elapsed={SHARD_S:.2f} s, type={model.architecture}NextN, dtype={dtype}, "
            f"avail mem={plan.after_load - plan.draft:.2f} GB, mem usage={plan.draft:.2f} GB."
        )
    script.ranks_say(
        f"Using KV cache dtype: torch.{_torch_name(str(script.settings.args['kv_cache_dtype']))}"
    )


def _torch_name(dtype: str) -> str:
    return {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "bf16": "bfloat16"}.get(dtype, dtype)


def pool(script: Script) -> None:
    """KV pool and request slots."""
    plan, args = script.plan, script.settings.args
    script.wait(POOL_S)
    check_rules(script, "pool")
    if plan.kv_tokens <= 0:
        expert = script.settings.expert_parallel
        fail(
            script, "pool", "not-enough-memory", args, ranks="some",
            linger_s=600.0 if expert else 3.0, noisy=expert,
        )  # fmt: skip
    if plan.after_pool < MIN_POOL_GIB:
        run_out_of_memory(
            script, "pool", "pool-oom", wanted=plan.request_pool, free=plan.after_pool + plan.request_pool
        )
    half = plan.pool / 2.0
    split = (
        f"KV size: {plan.pool:.2f} GB"
        if script.world.model.is_mla
        else f"K size: {half:.2f} GB, V size: {half:.2f} GB"
    )
    script.ranks_say(f"KV Cache is allocated. #tokens: {plan.kv_tokens}, {split}")
    script.ranks_say(f"Memory pool end. avail mem={plan.after_pool:.2f} GB")
    script.uses(1.4 + plan.free - plan.after_pool)


def autotune(script: Script) -> None:
    """Kernel variants are tried; some do not start on this GPU."""
    if script.settings.args["moe_runner_backend"] != "flashinfer_cutlass" or not script.world.model.experts:
        return
    script.first_says("Running FlashInfer autotune...")
    script.say(
        f"{script.clock()} - INFO - autotuner.py:256 - flashinfer.jit: [Autotuner]: Autotuning process "
        "starts ...",
        None,
    )
    check_rules(script, "autotune")
    if script.world.machine.capability == "12.0" and script.world.model.quant == "nvfp4":
        _skipped_tactics(script)
    script.wait(AUTOTUNE_S)
    script.say(
        f"{script.clock()} - INFO - autotuner.py:262 - flashinfer.jit: [Autotuner]: Autotuning process ends",
        None,
    )
    script.first_says("FlashInfer autotune completed.")


def _skipped_tactics(script: Script) -> None:
    for tactic in range(SKIPS_PER_RANK):
        tile, group = BAD_TILES[tactic % len(BAD_TILES)]
        for rank in range(script.settings.ranks):
            text = logs.tactic_skipped(
                clock=script.clock(),
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
