"""A/A: how far launches of one and the same configuration lie apart, the same words in every output."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from moeagent.agent.show.text import percent, rate
from moeagent.memory.records import Rung
from moeagent.memory.run_view import RunView

HEAD = (
    "configuration", "concurrency", "launches", "tok/s, least to most", "standard deviation",
    "odd against even launches", "A/A",
)  # fmt: skip


def equal_launches(view: RunView) -> list[list[str]]:
    """A row for each rung at which two or more launches of the baseline, or of the best, were measured.

    The A/A test takes turns: every other launch stands for a candidate that changes nothing.
    """
    baseline, best = view.ledger.baseline, view.best
    configs = [("baseline", baseline), ("best", best if best != baseline else None)]
    counts = float(view.goal_settings["min_effect"])
    return [
        [name, str(concurrency), *_cells(rungs, counts)]
        for name, config in configs
        if config is not None
        for concurrency in view.ladder
        if len(rungs := view.ledger.rungs_at(config, concurrency)) > 1
    ]


def _cells(rungs: Sequence[Rung], counts: float) -> list[str]:
    logs = [math.log(rung.output_tok_s) for rung in rungs if rung.output_tok_s]
    effect = math.expm1(fmean(logs[::2]) - fmean(logs[1::2]))
    judged = "neutral" if abs(effect) <= counts else f"above the {counts:.0%} that count"
    return [
        str(len(logs)),
        f"{rate(math.exp(min(logs)))} to {rate(math.exp(max(logs)))}",
        f"{stdev(logs):.1%}",
        percent(effect),
        judged,
    ]
