"""What one more launch is expected to take, from this run's own launches or else from the prediction."""

from statistics import median

from moeagent.agent.loop import Loop
from moeagent.memory.records import Launch, LaunchOutcome, Record, ServerConfig

ASSUMED_START_S = 300.0
"""Stands for the start-up before the first launch, when nobody can know it; it never ends a run."""


class Expected(Record):
    """Time of a launch and what it costs."""

    start_s: float
    measure_s: float
    basis: str
    """measured, predicted or unknown: where the figures come from."""
    gpus: int
    price_per_hour: float | None = None

    @property
    def total_s(self) -> float:
        """From the start to the stop."""
        return self.start_s + self.measure_s

    @property
    def sure_s(self) -> float:
        """The part that rests on a figure: what a limit may be held against."""
        return self.total_s if self.basis == "measured" else self.measure_s

    @property
    def gpu_hours(self) -> float:
        """All GPUs of the host are taken to be held meanwhile."""
        return self.total_s / 3600 * self.gpus

    @property
    def cost(self) -> float | None:
        """Of the machine; None without a price."""
        return None if self.price_per_hour is None else self.total_s / 3600 * self.price_per_hour


def expected_launch(loop: Loop, config: ServerConfig) -> Expected:
    """The next launch of this configuration."""
    gpus, price = len(loop.surveyed.host.gpus), loop.settings.host.price_per_hour
    completed = [x for x in loop.ledger.launches if x.outcome is LaunchOutcome.COMPLETED]
    if not completed:
        predicted = predicted_measuring_s(loop, config)
        basis = "unknown" if predicted is None else "predicted"
        return Expected(
            start_s=ASSUMED_START_S, measure_s=predicted or 0.0, basis=basis, gpus=gpus, price_per_hour=price
        )
    start_s = median(launch.ready_after_s or 0.0 for launch in completed)
    whole_s = max(median(map(_seconds, completed)), loop.world.active_s / len(loop.ledger.launches))
    return Expected(
        start_s=round(start_s, 3),
        measure_s=round(max(0.0, whole_s - start_s), 3),
        basis="measured",
        gpus=gpus,
        price_per_hour=price,
    )


def predicted_measuring_s(loop: Loop, config: ServerConfig) -> float | None:
    """Seconds of the ladder at the predicted speed; None where no speed can be predicted."""
    workload, rungs = loop.settings.workload, loop.predictor.predict(config).rungs
    if not rungs:
        return None
    return round(
        sum(
            workload.prompts(rung.concurrency) * workload.output_len / max(rung.output_tok_s.value, 1e-9)
            for rung in rungs
        ),
        3,
    )


def _seconds(launch: Launch) -> float:
    return (launch.ready_after_s or 0.0) + sum(rung.duration_s for rung in launch.rungs)
