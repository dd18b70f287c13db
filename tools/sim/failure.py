"""What a failing server prints, and how it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moeagent.tools.sim import logs
from moeagent.tools.sim.logs import LogLine, rank_tag
from moeagent.tools.sim.memory import MemoryPlan
from moeagent.tools.sim.rules import StageName, load_traces
from moeagent.tools.sim.settings import Settings
from moeagent.tools.sim.world import World

KILLED = 137
TORCH_SHARE_GIB = 0.24
"""Of the weights figure, what torch did not allocate."""
TAIL_FRAMES = 46
RANK_GPU = "{gpu}"
"""Stands for the GPU of the rank that prints the text."""


@dataclass(frozen=True)
class Ending:
    """The last lines of a server, and its exit status; None hangs."""

    lines: tuple[LogLine, ...]
    exit_code: int | None


def capacity_gib(world: World) -> float:
    """Total memory of a card as torch reports it."""
    return world.machine.memory_mib / 1024.0 - logs.CAPACITY_OVERHEAD_GIB


def out_of_memory(
    world: World, plan: MemoryPlan, *, gpu: int | str, wanted: float, free: float, pooled: bool
) -> str:
    """torch's message, with the sizes of this plan."""
    allocated = plan.weights + plan.draft + (plan.pool if pooled else 0.0) - TORCH_SHARE_GIB
    return logs.out_of_memory(
        gpu=gpu, capacity=capacity_gib(world), free=free, allocated=max(allocated, 0.0),
        graphs=plan.graphs if pooled else 0.0, wanted=wanted,
    )  # fmt: skip


def _traceback(stage: str, trace: str, values: Mapping[str, Any]) -> list[str]:
    traces = load_traces()
    common, own = traces[f"stage-{stage}"], traces[trace]
    body = (common.frames + own.frames).strip("\n").split("\n")
    return [*(logs.fill(line, values) for line in body), *logs.fill(own.error, values).split("\n")]


def _capture_wrapper(error: str, stage: str) -> list[str]:
    piecewise = stage == "piecewise"
    name = "piecewise_cuda_graph_runner" if piecewise else "cuda_graph_runner"
    what = "Capture piecewise cuda graph failed" if piecewise else "Capture cuda graph failed"
    common = load_traces()["stage-pool"].frames.strip("\n").split("\n")[:8]
    return [
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        *common,
        f'  File "/sgl-workspace/sglang/python/sglang/srt/model_executor/{name}.py", line 373, in __init__',
        "    raise Exception(",
        f"Exception: {what}: {error}",
        *(logs.PIECEWISE_ADVICE if piecewise else logs.CAPTURE_ADVICE),
    ]


def argument_failure(at: float, trace: str, values: Mapping[str, Any]) -> Ending:
    """The parent refuses its own arguments: a plain traceback, exit status 1."""
    body = ["Traceback (most recent call last):", *_traceback("args", trace, values)]
    return Ending(tuple(LogLine(at, line) for line in body), 1)


def failing_ranks(count: int, which: str) -> tuple[int, ...]:
    """Ranks that print the failure, in the order in which they write."""
    order = (*range(1, count, 2), *range(0, count, 2))
    return {"all": order, "some": order[: max(count * 5 // 8, 1)], "one": (0,)}[which]


def startup_failure(
    at: float, settings: Settings, stage: StageName, trace: str, values: Mapping[str, Any], *,
    ranks: str = "all", linger_s: float = 2.0, noisy: bool = False,
) -> Ending:  # fmt: skip
    """Workers raise; the parent gets their signals and kills the tree."""
    body = _traceback(stage, trace, values)
    if stage in ("capture", "piecewise"):
        body += _capture_wrapper(body[-1] if trace != "piecewise-fp4" else body[-8], stage)
    lines: list[LogLine] = []
    who = failing_ranks(settings.ranks, ranks)
    for order, rank in enumerate(who):
        moment = at + 0.05 * order
        tag = rank_tag(rank, expert_parallel=settings.expert_parallel)
        head = LogLine(moment, "Scheduler hit an exception: Traceback (most recent call last):", tag)
        own = (line.replace(RANK_GPU, str(rank)) for line in body)
        lines += [head, *(LogLine(moment, line) for line in own), LogLine(moment, "")]
    quits = "Received sigquit from a child process. It usually means the child failed."
    last = at + 0.05 * len(who)
    lines += [LogLine(last, quits, "") for _ in who]
    if noisy:
        lines += [LogLine(last + 0.1, line) for _ in who for line in logs.LOGGING_NOISE]
    lines.append(LogLine(last + linger_s, "", None))
    return Ending(tuple(lines), KILLED)


def death_under_load(at: float, world: World, settings: Settings, plan: MemoryPlan, running: int) -> Ending:
    """A worker runs out of memory while serving: the cause, then the noise that a tail shows."""
    wanted = max(plan.per_request * running * 0.25, 0.5) if plan.per_request else 0.75
    free = max(plan.spare(running) + wanted, 0.03)
    body = load_traces()["stage-warmup"].frames + load_traces()["serve-oom"].frames
    lines: list[LogLine] = []
    for order, rank in enumerate(failing_ranks(settings.ranks, "some")[:3]):
        moment = at + 0.03 * order
        tag = rank_tag(rank, expert_parallel=settings.expert_parallel)
        error = out_of_memory(world, plan, gpu=rank, wanted=wanted, free=free - 0.004 * order, pooled=True)
        head = LogLine(moment, "Scheduler hit an exception: Traceback (most recent call last):", tag)
        text = [*body.strip("\n").split("\n"), *error.split("\n"), ""]
        lines += [head, *(LogLine(moment, line) for line in text)]
    end = at + 0.2
    lines.append(
        LogLine(end, "SIGQUIT received. signum=None, frame=None. It usually means one child failed.", "")
    )
    process = f"sglang::scheduler_{rank_tag(0, expert_parallel=settings.expert_parallel).replace(' ', '_')}"
    for rank in range(1, settings.ranks):
        lines.append(
            LogLine(
                end,
                f"[rank{rank}]:[W] ProcessGroupNCCL.cpp:1566] Warning: remote process exited or there was a "
                "network "
                f"error while waiting for an all-reduce (function operator())",
            )
        )
    lines.append(LogLine(end, "Fatal Python error: Aborted"))
    lines += [LogLine(end, line) for line in logs.native_frames(process, TAIL_FRAMES, world.seed + 7)]
    return Ending(tuple(lines), KILLED)
