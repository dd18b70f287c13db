"""What `moeagent worlds` prints: one line per world as it ends and a summary, or one object for programs."""

import sys
from statistics import median

from rich.console import Console
from rich.table import Table

from moeagent.agent.worlds.records import PolicyReport, WorldResult


class Output:
    """Standard output carries the result; progress goes to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._err = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)

    def world(self, result: WorldResult) -> None:
        """One world is done."""
        self._err.print(f"{result.name}: {result.best_over_oracle:.3f} of the oracle")

    def finish(self, report: PolicyReport) -> None:
        """All worlds are done."""
        if self._as_json:
            sys.stdout.write(report.model_dump_json() + "\n")
            return
        console = Console(markup=False, highlight=False)
        console.print(table(report))
        console.print(summary(report), soft_wrap=True)


def table(report: PolicyReport) -> Table:
    """One row per world."""
    shown = Table("world", "best/oracle", "to 95 %", "crashed", "GPU-hours", "false gains", "true gains")
    for world in report.worlds:
        shown.add_row(
            world.name, f"{world.best_over_oracle:.3f}", _count(world.launches_to_95), str(world.crashed),
            f"{world.gpu_hours:.1f}", str(world.false_gains), str(world.true_gains),
        )  # fmt: skip
    return shown


def summary(report: PolicyReport) -> str:
    """One sentence over all worlds."""
    worlds = report.worlds
    ratio = median(world.best_over_oracle for world in worlds)
    close = sum(world.best_over_oracle >= 0.95 for world in worlds)
    crashed = sum(world.crashed for world in worlds)
    false = sum(world.false_gains for world in worlds)
    return (
        f"{report.policy}, simulated worlds, {report.launches} launches each: median {ratio:.3f} of the "
        f"oracle, {close} of {len(worlds)} worlds within 5 %, {crashed} launches crashed, "
        f"{false} false gains claimed"
    )


def _count(launches: int | None) -> str:
    return "never" if launches is None else str(launches)
