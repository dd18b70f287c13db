"""Optuna's samplers on a world's space: random, TPE and GP, with constraints and pruning."""

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from moeagent.agent.worlds.bench import Bench, Choice
from moeagent.agent.worlds.preflight import Preflight
from moeagent.agent.worlds.search import best_of
from moeagent.memory.errors import InputError
from moeagent.memory.records import FlagValue, LaunchOutcome, Rung, ServerConfig
from moeagent.tools.sim.space import SpaceKnob, value_of, with_choice

if TYPE_CHECKING:
    import optuna

SamplerName = Literal["random", "tpe", "gp"]
STARTUP_TRIALS = 3
FREE_ASKS = 25
"""Ideas in a row that the preflight may turn down before one is launched all the same."""
BROKEN = "broken"
"""Trial attribute: above 0 when the launch crashed or the preflight turned it down."""
LEFT_OUT = "(left out)"


@dataclass(frozen=True)
class OptunaSearch:
    """One study per world that begins with the baseline; the objective is the best rung's output tok/s."""

    sampler: SamplerName
    preflight: bool = False

    @property
    def name(self) -> str:
        """As the command line spells it."""
        return self.sampler + "+preflight" * self.preflight

    def run(self, bench: Bench, seed: int) -> Choice:
        """Ask and tell until the launches are spent."""
        with warnings.catch_warnings():
            # Optuna marks constraints and the GP sampler as experimental by a warning.
            warnings.simplefilter("ignore")
            _Study(bench, self.sampler, seed, Preflight(bench) if self.preflight else None).spend()
        return best_of(bench)


class _Study:
    def __init__(self, bench: Bench, sampler: SamplerName, seed: int, gate: Preflight | None) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._bench, self._gate = bench, gate
        self._choices = {knob.name: choices(knob, bench.baseline) for knob in bench.space()}
        self._study = optuna.create_study(
            direction="maximize", sampler=make_sampler(sampler, seed),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS, n_warmup_steps=1),
        )  # fmt: skip
        self._study.enqueue_trial({name: spelled(value_of(bench.baseline, name)) for name in self._choices})

    def spend(self) -> None:
        """Every launch, and the asks between them that the preflight turns down."""
        refused = 0
        while self._bench.left > 0:
            trial = self._study.ask()
            config = self._config(trial)
            if self._gate is not None and refused < FREE_ASKS and self._gate.objection(config):
                refused += 1
                self._tell_broken(trial)
                continue
            refused = 0
            self._launch(trial, config)

    def _config(self, trial: "optuna.Trial") -> ServerConfig:
        config = self._bench.baseline
        for name, known in self._choices.items():
            chosen = trial.suggest_categorical(name, list(known))
            config = with_choice(config, name, known[chosen])
        return config

    def _launch(self, trial: "optuna.Trial", config: ServerConfig) -> None:
        import optuna

        def stop(rung: Rung) -> bool:
            trial.report(rung.output_tok_s or 0.0, step=self._bench.workload.ladder.index(rung.concurrency))
            return bool(trial.should_prune())

        made = self._bench.launch(config, stop=stop)
        if made.value is not None:
            trial.set_user_attr(BROKEN, -1.0)
            self._study.tell(trial, made.value)
        elif made.outcome.outcome is LaunchOutcome.STOPPED:
            trial.set_user_attr(BROKEN, -1.0)
            self._study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            self._tell_broken(trial)

    def _tell_broken(self, trial: "optuna.Trial") -> None:
        """An infeasible trial, as Optuna's constraints want it: complete, with the worst value."""
        trial.set_user_attr(BROKEN, 1.0)
        self._study.tell(trial, 0.0)


def choices(knob: SpaceKnob, baseline: ServerConfig) -> dict[str, FlagValue | None]:
    """The knob's choices by their spelling, the baseline's own included."""
    now = value_of(baseline, knob.name)
    return {spelled(value): value for value in (now, *knob.choices)}


def spelled(value: FlagValue | None) -> str:
    """A choice as text: Optuna takes no mix of types as categories of one parameter."""
    return LEFT_OUT if value is None else str(value)


def constraints(trial: "optuna.trial.FrozenTrial") -> tuple[float]:
    """Optuna's form of a constraint: above zero is infeasible."""
    return (float(trial.user_attrs.get(BROKEN, 0.0)),)


def make_sampler(name: SamplerName, seed: int) -> Any:
    """Optuna's sampler. Raises InputError for the GP without PyTorch."""
    from optuna.samplers import GPSampler, RandomSampler, TPESampler

    if name == "random":
        return RandomSampler(seed=seed)
    if name == "tpe":
        return TPESampler(seed=seed, n_startup_trials=STARTUP_TRIALS, constraints_func=constraints)
    if find_spec("torch") is None:
        raise InputError("--policy gp: Optuna's GP sampler needs PyTorch: pip install 'moeagent[gp]'")
    return GPSampler(seed=seed, n_startup_trials=STARTUP_TRIALS, constraints_func=constraints)
