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
    configs = {"baseline": view.ledger.baseline, "best": view.best}
    if view.best == view.ledger.baseline:
        del configs["best"]
    counts = float(view.header["settings"]["goal"]["min_effect"])
    rows = []
    for name, config in configs.items():
        for concurrency in view.ladder if config is not None else ():
            usable = [r for r in view.ledger.rungs_at(config, concurrency) if r.usable] if config else []
            if len(usable) > 1:
                rows.append([name, str(concurrency), *_cells(usable, counts)])
    return rows


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
