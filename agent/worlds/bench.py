"""What a policy gets to see of a world: facts, space, and a bounded number of noisy launches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from moeagent.memory.records import LaunchOutcome, Rung, ServerConfig, Workload
from moeagent.tools.sim.space import SpaceKnob
from moeagent.tools.sim.virtual import VirtualOutcome
from moeagent.tools.sim.worlds import BenchWorld, WorldFacts

Watch = Callable[[Rung], bool]


class BudgetSpentError(Exception):
    """The policy asked for one launch more than it has."""


@dataclass(frozen=True)
class Trial:
    """One launch that was made."""

    config: ServerConfig
    outcome: VirtualOutcome

    @property
    def value(self) -> float | None:
        """Measured output tokens/s at the best rung; None when the launch crashed or was cut short."""
        if self.outcome.outcome is not LaunchOutcome.COMPLETED:
            return None
        return best_rung(self.outcome.rungs)


@dataclass(frozen=True)
class Claim:
    """The policy says that one configuration is faster than another."""

    candidate: ServerConfig
    against: ServerConfig


@dataclass(frozen=True)
class Choice:
    """What a policy returns at its end."""

    best: ServerConfig
    claims: tuple[Claim, ...] = ()


@dataclass
class Bench:
    """A world behind a budget; keeps every launch."""

    world: BenchWorld
    launches: int
    trials: list[Trial] = field(default_factory=list)

    @property
    def baseline(self) -> ServerConfig:
        """The configuration that every policy starts from."""
        return self.world.baseline

    @property
    def workload(self) -> Workload:
        """The load and its ladder."""
        return self.world.workload

    @property
    def left(self) -> int:
        """Launches that may still be made."""
        return self.launches - len(self.trials)

    def facts(self) -> WorldFacts:
        """The machine, the engine and the model."""
        return self.world.facts()

    def space(self) -> tuple[SpaceKnob, ...]:
        """The declared knobs and values."""
        return self.world.space()

    def launch(
        self, config: ServerConfig, *, ladder: Sequence[int] | None = None, stop: Watch | None = None
    ) -> Trial:
        """One launch on the ladder; `stop` is asked after each rung. Raises BudgetSpentError."""
        if self.left <= 0:
            raise BudgetSpentError(f"all {self.launches} launches are spent")
        workload = self.workload
        if ladder is not None:
            workload = workload.model_copy(update={"ladder": tuple(ladder)})
        outcome = self.world.launch(config, workload, len(self.trials) + 1)
        trial = Trial(config, outcome if stop is None else cut_short(outcome, stop))
        self.trials.append(trial)
        return trial


def best_rung(rungs: Sequence[Rung]) -> float | None:
    """Output tokens/s at the best rung."""
    return max((r.output_tok_s for r in rungs if r.usable and r.output_tok_s is not None), default=None)


def cut_short(outcome: VirtualOutcome, stop: Watch) -> VirtualOutcome:
    """The outcome up to the first rung after which the watcher stops it; the time that is saved is free."""
    for number, rung in enumerate(outcome.rungs[:-1], 1):
        if rung.usable and stop(rung):
            saved = sum(left.duration_s for left in outcome.rungs[number:])
            return replace(
                outcome, outcome=LaunchOutcome.STOPPED, rungs=outcome.rungs[:number], died_at=None,
                cost_s=max(outcome.cost_s - saved, 0.0),
            )  # fmt: skip
    return outcome
