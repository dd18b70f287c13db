"""The virtual-time face: one launch with its whole ladder in milliseconds instead of hours."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from moeagent.memory.records import ClientHealth, Distribution, LaunchOutcome, Rung, ServerConfig, Workload
from moeagent.tools.sim.catalogue import CommandLineError, load_catalogue
from moeagent.tools.sim.failure import death_under_load
from moeagent.tools.sim.logs import LogLine, decode_batch, rank_tag
from moeagent.tools.sim.machines import Instance, instance
from moeagent.tools.sim.memory import MemoryPlan
from moeagent.tools.sim.scheduler import LIMIT_FUZZ
from moeagent.tools.sim.settings import Settings
from moeagent.tools.sim.startup import Startup, plan_startup
from moeagent.tools.sim.steady import Behaviour
from moeagent.tools.sim.world import World

EPOCH = datetime(2026, 2, 20, 10, 0, 0, tzinfo=UTC)
REFUSED_S = 6.0
STOP_S = 8.0
HANG_PATIENCE_S = 600.0
"""Virtual seconds that a careful launcher waits before it calls a silent server hung."""
DEATH_SHARE = 0.2
"""Share of a rung that is over when the server dies in it."""
NEIGHBOUR_SLOWDOWN = (0.04, 0.15)


@dataclass(frozen=True)
class VirtualOutcome:
    """What one launch gave: times in simulated seconds."""

    outcome: LaunchOutcome
    rungs: tuple[Rung, ...]
    """Every rung that was begun; the one in which the server died is partial."""
    died_at: int | None
    """Concurrency of the rung in which the server died."""
    ready_after_s: float | None
    cost_s: float
    """Time on the machine: start-up, load and stop."""
    exit_code: int | None
    effective: Mapping[str, Any]
    """Settings in force by flag name, where they differ from the engine's defaults."""
    memory: Mapping[str, float]
    answers: str
    """Identity of the greedy answers: another one than the baseline's is a wrong output."""
    lines: tuple[LogLine, ...]

    @cached_property
    def log(self) -> str:
        """The server's log."""
        return "\n".join(line.render(EPOCH).replace("{pid}", "4242") for line in self.lines) + "\n"

    @property
    def crashed(self) -> bool:
        """True when the server died, hung or never started."""
        return self.outcome is not LaunchOutcome.COMPLETED


@dataclass(frozen=True)
class _Noise:
    """Noise of one launch: from the world's seed, the configuration and the launch's nonce only."""

    rng: random.Random
    launch: float
    limit: float
    within: float

    @classmethod
    def draw(cls, world: World, config: ServerConfig, nonce: int) -> "_Noise":
        rng = random.Random(f"{world.name}-{world.seed}-{config.id}-{nonce}")
        hidden = world.hidden
        launch = max(rng.gauss(1.0, hidden.noise_between), 0.6) / (1.0 + hidden.drift * nonce / 100.0)
        if rng.random() < hidden.neighbour:
            launch *= 1.0 - rng.uniform(*NEIGHBOUR_SLOWDOWN)
        return cls(rng, launch, rng.gauss(1.0, LIMIT_FUZZ), hidden.noise_within)

    def rung(self) -> float:
        """Speed factor of one rung."""
        return self.launch * max(self.rng.gauss(1.0, self.within), 0.6)


def _spread(mean: float, p50: float, p90: float, p99: float) -> Distribution:
    return Distribution(mean=mean, p50=p50, p90=p90, p95=0.45 * p90 + 0.55 * p99, p99=p99)


def _flat(value: float, tail: float) -> Distribution:
    return _spread(value, value * 0.995, value * (1.0 + tail / 2), value * (1.0 + tail))


def measured(behaviour: Behaviour, concurrency: int, workload: Workload, speed: float) -> Rung:
    """A rung as a load generator reports it; `speed` above 1 is a fast moment."""
    requests, slow = workload.prompts(concurrency), 1.0 / speed
    rate = behaviour.output_tok_s * speed
    first = behaviour.ttft_mean * slow * 1e3
    tpot = behaviour.tpot * slow * 1e3
    each = first + tpot * (workload.output_len - 1)
    itl = behaviour.itl * slow * 1e3
    late = behaviour.stall * slow * 1e3
    return Rung(
        concurrency=concurrency, completed=requests, failed=0,
        duration_s=requests * workload.output_len / rate,
        output_tok_s=rate,
        total_tok_s=rate * (workload.input_len + workload.output_len) / workload.output_len,
        ttft_ms=_spread(first, behaviour.ttft_p50 * slow * 1e3, behaviour.ttft_p90 * slow * 1e3,
                        behaviour.ttft_p99 * slow * 1e3),
        itl_ms=_spread(tpot, itl, itl * 1.05, late if concurrency > 1 else itl * 1.1),
        tpot_ms=_flat(tpot, 0.12), e2e_ms=_flat(each, 0.15),
        client=ClientHealth(cpu_s=0.0, loop_lag_ms=0.0, valid=True),
        note="simulated",
    )  # fmt: skip


def _broken(concurrency: int, workload: Workload, duration: float) -> Rung:
    requests = workload.prompts(concurrency)
    return Rung(
        concurrency=concurrency, completed=0, failed=requests,
        failures_by_kind={"incomplete": min(concurrency, requests), "connect": max(requests - concurrency,
        0)},
        duration_s=duration, output_tok_s=None, total_tok_s=None,
        client=ClientHealth(cpu_s=0.0, loop_lag_ms=0.0, valid=True), note="simulated; the server died",
    )  # fmt: skip


def _effective(settings: Settings) -> dict[str, Any]:
    flags = {entry.dest: entry for entry in load_catalogue().flags}
    return {
        flags[name].flag: value
        for name, value in settings.args.items()
        if name in flags
        and value not in (None, False)
        and value != flags[name].default
        and name != "model_path"
    }


def memory_figures(plan: MemoryPlan) -> dict[str, float]:
    """The figures of the engine's memory lines."""
    return {
        "weights_gib": round(plan.weights + plan.draft, 2), "kv_tokens": float(plan.kv_tokens),
        "kv_gib": round(plan.pool, 2),
        "available_gib": round(plan.after_capture, 2), "graphs_gib": round(plan.graphs, 2),
    }  # fmt: skip


def answers_of(world: World, settings: Settings) -> str:
    """Identity of the greedy answers under these settings."""
    wrong = [entry for entry in world.hidden.garbage if settings.has_any((entry,))]
    return "+".join(["reference", *wrong])


class VirtualMachine:
    """Launches in one world, in virtual time. Equal (configuration, workload, nonce) give equal outcomes."""

    def __init__(self, world: World, reference: ServerConfig | None = None) -> None:
        self.world = world
        self._reference = instance(world, reference) if reference is not None and world.hidden.flat else None
        """A placebo world is as fast as its reference under every configuration."""

    def behaviour(self, made: Instance, concurrency: int, workload: Workload) -> Behaviour:
        """Noise-free behaviour of an instance at one concurrency."""
        return (self._reference or made).at(concurrency, workload)

    def launch(self, config: ServerConfig, workload: Workload, nonce: int) -> VirtualOutcome:
        """Start a server with this configuration and climb the workload's ladder until its end or a death."""
        try:
            made = instance(self.world, config)
        except CommandLineError as error:
            lines = tuple(LogLine(0.0, line) for line in error.text.rstrip("\n").split("\n"))
            return VirtualOutcome(
                LaunchOutcome.REFUSED, (), None, None, REFUSED_S, error.status, {}, {}, "", lines
            )  # fmt: skip
        noise = _Noise.draw(self.world, config, nonce)
        startup = plan_startup(self.world, made.settings, made.plan, rng=noise.rng, start=EPOCH)
        if startup.ready_at is None:
            return self._stillborn(made, startup)
        return self._climb(made, startup, workload, noise)

    def _stillborn(self, made: Instance, startup: Startup) -> VirtualOutcome:
        last = startup.lines[-1].at
        hung = startup.hangs
        return VirtualOutcome(
            LaunchOutcome.HUNG_STARTING if hung else LaunchOutcome.DIED_STARTING, (), None, None,
            last + (HANG_PATIENCE_S if hung else 0.0) + STOP_S, startup.exit_code, _effective(made.settings),
            {}, "", startup.lines,
        )  # fmt: skip

    def _climb(self, made: Instance, startup: Startup, workload: Workload, noise: _Noise) -> VirtualOutcome:
        assert startup.ready_at is not None
        rungs: list[Rung] = []
        lines, now, died_at = list(startup.lines), startup.ready_at, None
        groups = made.settings.groups
        limit = made.plan.breaks_at()
        for concurrency in workload.ladder:
            behaviour = self.behaviour(made, concurrency, workload)
            if limit is not None and min(behaviour.running, concurrency) / groups >= max(
                limit * noise.limit, 2
            ):
                lasted = behaviour.duration * DEATH_SHARE
                rungs.append(_broken(concurrency, workload, lasted))
                now, died_at = now + lasted, concurrency
                ending = death_under_load(
                    now, self.world, made.settings, made.plan, behaviour.running // groups
                )
                lines += ending.lines
                break
            rungs.append(measured(behaviour, concurrency, workload, noise.rung()))
            now += rungs[-1].duration_s
            lines.append(_decode_line(made, behaviour, rungs[-1], now))
        return VirtualOutcome(
            LaunchOutcome.DIED_SERVING if died_at else LaunchOutcome.COMPLETED, tuple(rungs), died_at,
            startup.ready_at, now + STOP_S, 137 if died_at else None, _effective(made.settings),
            memory_figures(made.plan), answers_of(self.world, made.settings), tuple(lines),
        )  # fmt: skip


def _decode_line(made: Instance, behaviour: Behaviour, rung: Rung, at: float) -> LogLine:
    settings, plan = made.settings, made.plan
    text = decode_batch(
        running=behaviour.running, tokens=min(behaviour.tokens, plan.kv_tokens * settings.groups),
        usage=min(behaviour.tokens / max(plan.kv_tokens * settings.groups, 1), 1.0),
        graph=behaviour.running <= settings.graph_bs, rate=rung.output_tok_s or 0.0,
        queued=max(rung.concurrency - behaviour.running, 0),
        accept=made.speed.tokens_per_step() if settings.speculative else None,
    )  # fmt: skip
    return LogLine(at, text, rank_tag(0, expert_parallel=settings.expert_parallel))
