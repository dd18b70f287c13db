"""What `moeagent bench` prints: a table for people, one object for programs."""

import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from moeagent.memory.records import Distribution, Rung
from moeagent.tools.load import RungOutcome
from moeagent.tools.load.bench import Ready
from moeagent.tools.load.runner import Progress

PLAIN_WIDTH = 140
"""Columns of the table in a file or pipe."""


class Output:
    """Standard output carries the result alone; what happens meanwhile goes to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._err = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)

    def start(self, ready: Ready) -> None:
        """Say what will be measured."""
        spec = ready.calibration
        length = f"{spec.words} words a prompt" + ("" if spec.measured else " (its token count is not known)")
        self._err.print(
            f"{ready.target.root}: {ready.engine}, {ready.target.api}, {ready.target.model}; {length}"
        )

    def progress(self, concurrency: int) -> Progress:
        """A live line on a terminal, nothing elsewhere."""

        def show(completed: int, total: int, tokens: int, rate: float) -> None:
            if self._err.is_terminal:
                goal = f"/{total}" if total else ""
                line = f"\rconcurrency {concurrency}: {completed}{goal} requests, {rate:.0f} tokens/s   "
                sys.stderr.write(line)
                sys.stderr.flush()

        return show

    def rung(self, outcome: RungOutcome) -> RungOutcome:
        """One rung is done."""
        rung = outcome.rung
        if self._err.is_terminal:
            sys.stderr.write("\r")
        state = rung.invalid or "valid"
        self._err.print(
            f"concurrency {rung.concurrency}: {rung.completed} complete, {rung.failed} failed, "
            f"{number(rung.output_tok_s)} tok/s in {rung.duration_s:.1f} s; {state}"
        )
        return outcome

    def finish(self, rungs: Sequence[Rung]) -> None:
        """All figures."""
        if self._as_json:
            content = {"rungs": [rung.model_dump(mode="json") for rung in rungs]}
            sys.stdout.write(json.dumps(content, indent=2) + "\n")
            return
        console = Console(markup=False, highlight=False)
        if not console.is_terminal:
            console.width = PLAIN_WIDTH
        console.print(table(rungs))
        for line in remarks(rungs):
            console.print(line, soft_wrap=True)


def table(rungs: Sequence[Rung]) -> Table:
    """One row per rung; latencies in milliseconds as median / 99th percentile."""
    shown = Table("conc", "complete", "failed", "out tok/s", "total tok/s", "TTFT ms", "ITL ms", "TPOT ms",
                  "E2E ms", "good/s", "valid")  # fmt: skip
    for rung in rungs:
        spreads = (pair(d) for d in (rung.ttft_ms, rung.itl_ms, rung.tpot_ms, rung.e2e_ms))
        shown.add_row(
            str(rung.concurrency), str(rung.completed), str(rung.failed), number(rung.output_tok_s),
            number(rung.total_tok_s), *spreads, number(rung.goodput_rps), "no" if rung.invalid else "yes",
        )  # fmt: skip
    return shown


def remarks(rungs: Sequence[Rung]) -> list[str]:
    """Why a rung may not be used, what failed, and what else to know."""
    lines = []
    for rung in rungs:
        if rung.invalid:
            lines.append(f"concurrency {rung.concurrency} INVALID: {rung.invalid}")
        for kind, count in rung.failures_by_kind.items():
            lines.append(
                f"concurrency {rung.concurrency}: {count} x {kind}: {rung.failure_examples.get(kind)}"
            )
        if rung.note:
            lines.append(f"concurrency {rung.concurrency}: {rung.note}")
        if rung.cache_hit_rate:
            lines.append(
                f"concurrency {rung.concurrency}: {rung.cache_hit_rate:.0%} of the prompts came from a cache"
            )
    return lines


def number(value: float | None) -> str:
    """A rate; a dash for one that was not measured."""
    return "-" if value is None else f"{value:,.1f}"


def pair(distribution: Distribution | None) -> str:
    """Median and 99th percentile; a dash for what was not measured."""
    return "-" if distribution is None else f"{distribution.p50:,.1f} / {distribution.p99:,.1f}"
