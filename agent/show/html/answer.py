"""The first thing on the page: the command to run, the gain as far as it is proven, the constraints."""

from dataclasses import dataclass

from moeagent.agent.show.constraints import checks, constraints_sentence
from moeagent.agent.show.curves import Curve, Point, Role
from moeagent.agent.show.html.measured import constraint_table
from moeagent.agent.show.html.table import Table
from moeagent.agent.show.html.words import count, sentence
from moeagent.agent.show.text import config_text, effect_text, percent, rate
from moeagent.memory.records import ServerConfig
from moeagent.memory.run_view import RunView


@dataclass(frozen=True)
class Answer:
    """What an engineer reads in a minute."""

    headline: str
    """One sentence; a gain only where the verdict supports one."""
    gain: str
    """The gain with its interval, empty where none is supported."""
    why: str
    command: str
    settings: str
    baseline_top: str
    best_top: str
    constraints: str
    constraint_table: Table | None


def answer(view: RunView, curves: tuple[Curve, ...]) -> Answer | None:
    """The answer of the run; None when nothing was measured."""
    if view.best is None:
        return None
    gain = view.gain
    return Answer(
        headline=_headline(view),
        gain=effect_text(gain) if gain else "",
        why=_why(view),
        command=view.command_of(view.best) or "",
        settings=config_text(view.best),
        baseline_top=_top(view, curves, "baseline", view.ledger.baseline),
        best_top=_top(view, curves, "best", view.best),
        constraints=constraints_sentence(view, view.best),
        constraint_table=constraint_table(view, view.best),
    )


def _headline(view: RunView) -> str:
    verdict, gain = view.best_verdict, view.gain
    if verdict is None:
        return "No change was shown to be better than the baseline."
    if gain is None:
        return f"{verdict.hypothesis} is the best configuration; no number for its gain is supported."
    return (
        f"{verdict.hypothesis} is better by {percent(gain.effect)} "
        f"(interval {percent(gain.low)} to {percent(gain.high)})."
    )


def _why(view: RunView) -> str:
    if view.best_verdict is None:
        tried = count(len(view.ledger.hypotheses), "hypothesis was", "hypotheses were")
        return f"{tried} tried; each is listed below with what was learnt from it."
    reason = view.best_verdict.reason
    told = f"That is {sentence(view.gain_source)} " if view.gain else ""
    return f"{told}{sentence(reason[:1].upper() + reason[1:])}"


def _top(view: RunView, curves: tuple[Curve, ...], role: Role, config: ServerConfig | None) -> str:
    """The highest mean throughput in this role where the constraints hold, with its concurrency.

    Rungs beside the ladder were asked of some configurations only.
    """
    broken = {c.concurrency for c in checks(view, config) if not c.holds} if config else set[int]()
    points: list[Point] = [
        point
        for curve in curves
        for point in curve.points
        if curve.role == role and point.concurrency in view.ladder and point.concurrency not in broken
    ]
    if not points:
        return ""
    top = max(points, key=lambda p: p.tok_s)
    return f"{rate(top.tok_s)} tok/s at {top.concurrency}"
