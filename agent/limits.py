"""What the campaign may still spend; asked before spending."""

import re
from collections.abc import Iterable, Iterator

from moeagent.agent.approval.answers import never_launched
from moeagent.agent.proposers.view import Budget
from moeagent.agent.settings import LimitSettings
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import LaunchOutcome, Record

FAILED = (LaunchOutcome.DIED_STARTING, LaunchOutcome.HUNG_STARTING, LaunchOutcome.DIED_SERVING)
LABELS = {
    "experiments": "experiments",
    "launches": "launches",
    "hours": "hours",
    "gpu_hours": "GPU-hours",
    "money": "units of money",
}
"""What a limit's message calls it, by the name of its setting."""
_MODEL_LIMIT = re.compile(r"the limit of \S+ (calls|tokens|money) for the language model is reached")


class Spending(Record):
    """What was spent when a launch is about to be made, and what that launch is expected to take."""

    active_s: float
    gpus: int = 0
    price_per_hour: float | None = None
    """Of the machine."""
    model_money: float = 0.0
    """Spent on the language model."""
    next_s: float = 0.0
    """Expected duration of the next launch; 0 where nothing is known of it."""

    def of(self, name: str, seconds: float) -> float:
        """What so much time comes to, in the unit of the limit of this name."""
        hours = seconds / 3600
        return {
            "hours": hours,
            "gpu_hours": hours * self.gpus,
            "money": hours * (self.price_per_hour or 0.0),
        }[name]


def launches_exhausted(limits: LimitSettings, ledger: Ledger, spending: Spending) -> str:
    """Why no further launch may be made; empty while one may."""
    if len(ledger.launches) >= limits.launches:
        return f"the limit of {limits.launches} launches is reached"
    reached = next(_time_limits(limits, spending), "")
    if reached:
        return reached
    failures = consecutive_failures(ledger)
    if failures >= limits.consecutive_failures:
        return f"{failures} launches in a row failed"
    return ""


def experiments_exhausted(limits: LimitSettings, ledger: Ledger, spending: Spending) -> str:
    """Why no further hypothesis may be tried; empty while one may."""
    if experiments_done(ledger) >= limits.experiments:
        return f"the limit of {limits.experiments} experiments is reached"
    return launches_exhausted(limits, ledger, spending)


def experiments_done(ledger: Ledger) -> int:
    """Hypotheses that were launched or are about to be: one that was not approved costs nothing."""
    return len(ledger.hypotheses) - len(never_launched(ledger))


def _time_limits(limits: LimitSettings, spending: Spending) -> Iterator[str]:
    """The limits that time uses up, reached or about to be passed."""
    for name, bound in (("hours", limits.hours), ("gpu_hours", limits.gpu_hours), ("money", limits.money)):
        if bound is None:
            continue
        spent = spending.of(name, spending.active_s) + (spending.model_money if name == "money" else 0.0)
        next_ = spending.of(name, spending.next_s)
        if spent >= bound:
            yield f"the limit of {bound:g} {LABELS[name]} is reached"
        elif spent + next_ > bound:
            yield (
                f"the limit of {bound:g} {LABELS[name]} would be passed: {spent:.3g} are spent, and the next "
                f"launch, which takes about {next_:.3g}, is not started"
            )


def consecutive_failures(ledger: Ledger) -> int:
    """Failed launches since the last one that completed."""
    count = 0
    for launch in reversed(ledger.launches):
        if launch.outcome not in FAILED:
            break
        count += 1
    return count


def budget_left(limits: LimitSettings, ledger: Ledger, active_s: float) -> Budget:
    """For the proposer's eyes."""
    return Budget(
        experiments=max(0, limits.experiments - experiments_done(ledger)),
        launches=max(0, limits.launches - len(ledger.launches)),
        hours=round(max(0.0, limits.hours - active_s / 3600), 3),
    )


def raise_hint(reason: str) -> str:
    """The option that raises the limit which ended the run; empty when no limit did."""
    for name, label in LABELS.items():
        if re.match(rf"the limit of \S+ {label} (is reached|would be passed)", reason):
            return f"--limit {name}=N"
    if re.match(r"\d+ launches are left, \d+ of them reserved", reason):
        return "--limit launches=N"
    return "--limit consecutive_failures=N" if "in a row failed" in reason else ""


def model_hint(notes: Iterable[str]) -> str:
    """The option that lets the language model go on, where one of its limits silenced it."""
    found = [hit for note in notes if (hit := _MODEL_LIMIT.search(note))]
    return f"--limit llm_{found[-1][1]}=N" if found else ""
