"""What the campaign may still spend; asked before spending."""

from moeagent.agent.proposers.view import Budget
from moeagent.agent.settings import LimitSettings
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import LaunchOutcome

FAILED = (LaunchOutcome.DIED_STARTING, LaunchOutcome.HUNG_STARTING, LaunchOutcome.DIED_SERVING)


def launches_exhausted(limits: LimitSettings, ledger: Ledger, active_s: float) -> str:
    """Why no further launch may be made; empty while one may."""
    if len(ledger.launches) >= limits.launches:
        return f"the limit of {limits.launches} launches is reached"
    if active_s >= limits.hours * 3600:
        return f"the limit of {limits.hours:g} hours is reached"
    failures = consecutive_failures(ledger)
    if failures >= limits.consecutive_failures:
        return f"{failures} launches in a row failed"
    return ""


def experiments_exhausted(limits: LimitSettings, ledger: Ledger, active_s: float) -> str:
    """Why no further hypothesis may be tried; empty while one may."""
    if len(ledger.hypotheses) >= limits.experiments:
        return f"the limit of {limits.experiments} experiments is reached"
    return launches_exhausted(limits, ledger, active_s)


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
        experiments=max(0, limits.experiments - len(ledger.hypotheses)),
        launches=max(0, limits.launches - len(ledger.launches)),
        hours=round(max(0.0, limits.hours - active_s / 3600), 3),
    )


def raise_hint(reason: str) -> str:
    """The option that raises the limit which ended the run; empty when no limit did."""
    for name in ("experiments", "launches", "hours"):
        if f" {name} is reached" in reason:
            return f"--limit {name}=N"
    return "--limit consecutive_failures=N" if "in a row failed" in reason else ""
