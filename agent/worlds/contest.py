"""Runs one policy on worlds and scores it against the truth, which the policy never sees."""

from collections.abc import Callable, Iterable
from typing import Protocol

from moeagent.agent.worlds.bench import Bench, Choice
from moeagent.agent.worlds.records import PolicyReport, WorldResult
from moeagent.memory.records import LaunchOutcome, ServerConfig
from moeagent.tools.sim.worlds import BenchWorld

CLOSE = 0.95
"""Share of the oracle's value that counts as found."""
CRASHED = (
    LaunchOutcome.DIED_STARTING, LaunchOutcome.HUNG_STARTING, LaunchOutcome.DIED_SERVING,
    LaunchOutcome.REFUSED,
)  # fmt: skip


class Policy(Protocol):
    """Spends a world's launches and returns a configuration."""

    @property
    def name(self) -> str:
        """As the command line spells it."""

    def run(self, bench: Bench, seed: int) -> Choice:
        """Search; `seed` is for the policy's own random numbers."""


def contest(
    policy: Policy,
    worlds: Iterable[BenchWorld],
    *,
    seed: int,
    launches: int,
    on_result: Callable[[WorldResult], object] = lambda result: None,
) -> PolicyReport:
    """The policy on every world in turn. Raises InputError where a user's world fails."""
    results = []
    for number, world in enumerate(worlds):
        results.append(play(policy, world, seed=seed * 1000 + number, launches=launches))
        on_result(results[-1])
    return PolicyReport(policy=policy.name, seed=seed, launches=launches, worlds=tuple(results))


def play(policy: Policy, world: BenchWorld, *, seed: int, launches: int) -> WorldResult:
    """The policy on one world."""
    bench = Bench(world, launches)
    return score(bench, policy.run(bench, seed))


def score(bench: Bench, choice: Choice) -> WorldResult:
    """Compare what the policy returned and claimed with the world's noise-free values."""
    world = bench.world
    _, oracle = world.oracle()
    true = [claim for claim in choice.claims if _faster(world, claim.candidate, claim.against)]
    hours = sum(trial.outcome.cost_s for trial in bench.trials) / 3600
    return WorldResult(
        name=world.name,
        best_over_oracle=round((world.value(choice.best) or 0.0) / oracle, 4),
        launches_to_95=_launches_to(bench, CLOSE * oracle),
        crashed=sum(trial.outcome.outcome in CRASHED for trial in bench.trials),
        gpu_hours=round(hours * max(len(world.facts().host.gpus), 1), 3),
        false_gains=len(choice.claims) - len(true),
        true_gains=len(true),
    )


def _launches_to(bench: Bench, wanted: float) -> int | None:
    values = (bench.world.value(trial.config) for trial in bench.trials)
    return next((n for n, value in enumerate(values, 1) if value is not None and value >= wanted), None)


def _faster(world: BenchWorld, candidate: ServerConfig, against: ServerConfig) -> bool:
    before, after = world.value(against), world.value(candidate)
    return after is not None and (before is None or after > before)
