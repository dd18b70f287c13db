"""A start-up being written, and the ways in which it ends early."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from moeagent.tools.sim import failure
from moeagent.tools.sim.failure import Ending, argument_failure, startup_failure
from moeagent.tools.sim.logs import LogLine, rank_tag
from moeagent.tools.sim.memory import MemoryPlan
from moeagent.tools.sim.rules import Rule
from moeagent.tools.sim.settings import Settings
from moeagent.tools.sim.world import World


@dataclass
class Script:
    """A start-up being written: what it prints, when, and how much memory is in use."""

    world: World
    settings: Settings
    plan: MemoryPlan
    rng: random.Random
    start: datetime
    now: float = 0.0
    lines: list[LogLine] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        """Let about this much time pass."""
        self.now += seconds * self.rng.uniform(0.93, 1.08)

    def say(self, text: str, tag: str | None = "") -> None:
        """Print a line of the parent; tag None leaves the prefix out."""
        self.lines.append(LogLine(self.now, text, tag))

    def tag(self, rank: int) -> str:
        """The tag of one worker."""
        tag = rank_tag(rank % self.settings.tp, expert_parallel=self.settings.expert_parallel)
        return f"DP{rank // self.settings.tp} {tag}" if self.settings.replicas > 1 else tag

    def ranks_say(self, text: str) -> None:
        """Print a line on every rank, in no order."""
        order = list(range(self.settings.ranks))
        self.rng.shuffle(order)
        for rank in order:
            self.say(text, self.tag(rank))

    def first_says(self, text: str) -> None:
        """Print a line on rank 0."""
        self.say(text, self.tag(0))

    def uses(self, gib: float) -> None:
        """Note the memory in use from now on."""
        self.memory.append((self.now, gib))

    def clock(self) -> str:
        """The time as the autotuner's own logger prints it."""
        moment = self.start + timedelta(seconds=self.now)
        return moment.strftime("%Y-%m-%d %H:%M:%S,") + f"{moment.microsecond // 1000:03d}"


class EndOfStart(Exception):  # noqa: N818 - the end of a script, not a fault
    """The start-up ends here."""

    def __init__(self, ending: Ending) -> None:
        super().__init__()
        self.ending = ending


def fail(script: Script, stage: Any, trace: str, values: Any, **options: Any) -> None:
    """End the start-up with a failure at this stage."""
    if stage == "args":
        raise EndOfStart(argument_failure(script.now, trace, values))
    raise EndOfStart(startup_failure(script.now, script.settings, stage, trace, values, **options))


def check_rules(script: Script, stage: str) -> None:
    """End the start-up when a refusal or a rule of this stage holds."""
    refusal = script.settings.refusal
    if refusal and refusal.stage == stage:
        fail(script, stage, refusal.trace, refusal.values)
    for rule in script.settings.rules:
        if rule.stage == stage and not rule.notice:
            _apply(script, rule)


def check_crashes(script: Script) -> None:
    """End the start-up when the world has a kernel that dies under these settings."""
    args = script.settings.args
    if script.settings.has_any(script.world.hidden.crashes):
        fail(script, "capture" if script.settings.graph_bs else "warmup", "illegal-access", args)


def _apply(script: Script, rule: Rule) -> None:
    if rule.hang:
        raise EndOfStart(Ending((), None))
    values = {
        **script.settings.args, "capability": script.world.machine.capability,
        "quant_method": script.world.model.quant_method,
    }  # fmt: skip
    assert rule.trace is not None
    noisy = rule.linger_s > 10
    fail(script, rule.stage, rule.trace, values, ranks=rule.ranks, linger_s=rule.linger_s, noisy=noisy)


def run_out_of_memory(script: Script, stage: str, trace: str, *, wanted: float, free: float) -> None:
    """End the start-up with a failed allocation; sizes in GiB."""
    pooled = stage in ("capture", "autotune")
    error = failure.out_of_memory(
        script.world, script.plan, gpu=failure.RANK_GPU, wanted=wanted, free=max(free, 0.02), pooled=pooled
    )
    fail(script, stage, trace, {"oom": error})
