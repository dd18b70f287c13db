"""Runs side by side, where a difference between them would mean something."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from moeagent.agent.show.curves import Curve, Point, curves
from moeagent.agent.show.plain import Text
from moeagent.agent.show.text import SIMULATED, effect_text, rate
from moeagent.memory.findings.store import workload_text
from moeagent.memory.records import Workload
from moeagent.memory.run_view import RunView

CAVEAT = (
    "Runs were not measured side by side: a difference between two of them holds what changed on the machine "
    "in between. A gain is proven within one run only."
)


@dataclass(frozen=True)
class Chosen:
    """A run, or one hypothesis of it."""

    view: RunView
    hypothesis: str | None = None

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return f"{self.view.run}:{self.hypothesis}" if self.hypothesis else self.view.run

    def curves(self) -> list[Curve]:
        """The chosen hypothesis's configurations, or baseline and best."""
        found = curves(self.view)
        if self.hypothesis:
            return [c for c in found if c.hypothesis == self.hypothesis]
        return [c for c in found if c.role != "candidate"]


@dataclass(frozen=True)
class Comparison:
    """What can be compared with the first one, and why the others cannot."""

    shown: tuple[Chosen, ...]
    refused: tuple[tuple[str, str], ...]
    """(name, why)."""

    def to_json(self) -> dict[str, Any]:
        """One object for programs."""
        return {
            "compared": [_chosen_json(each) for each in self.shown],
            "not_comparable": [{"name": name, "why": why} for name, why in self.refused],
        }


def compare(chosen: Sequence[Chosen]) -> Comparison:
    """Keep what shares host, model and workload with the first."""
    first, *others = chosen
    refused = [(other.name, why) for other in others if (why := why_not(first.view, other.view))]
    names = {name for name, _ in refused}
    return Comparison(tuple(c for c in chosen if c is first or c.name not in names), tuple(refused))


def why_not(one: RunView, other: RunView) -> str:
    """Why the two cannot be compared; empty when they can."""
    mine, theirs = _identity(one), _identity(other)
    if mine is None or theirs is None:
        return "its survey is not on the tape" if theirs is None else "the first run has no survey"
    different = [
        f"another {name}: {theirs[name]}, not {mine[name]}" for name in mine if mine[name] != theirs[name]
    ]
    return "; ".join(different)


def comparison_text(found: Comparison) -> RenderableType:
    """Tables by concurrency, and a line for each run that was left out."""
    parts: list[RenderableType] = []
    if any(chosen.view.simulated for chosen in found.shown):
        parts.append(Text(SIMULATED, style="bold yellow"))
    parts.append(_table(found.shown))
    parts += [Text(_gain_line(chosen)) for chosen in found.shown]
    parts += [Text(f"not comparable: {name}: {why}", style="yellow") for name, why in found.refused]
    return Group(*parts, Text(CAVEAT, style="dim"))


def _identity(view: RunView) -> dict[str, str] | None:
    facts = view.ledger.facts
    if facts is None:
        return None
    workload = Workload.model_validate(view.header["settings"]["workload"])
    kind = " (simulated)" if facts.scope.simulated else ""
    return {
        "host": f"{facts.scope.gpu_count} x {facts.scope.gpu}, machine {facts.host.machine_id}{kind}",
        "model": facts.scope.model,
        "workload": workload_text(workload),
    }


def _table(shown: Sequence[Chosen]) -> Table:
    rows = [(chosen, curve) for chosen in shown for curve in chosen.curves()]
    concurrencies = sorted({p.concurrency for _, curve in rows for p in curve.points})
    table = Table(title="output tok/s by concurrency, mean over launches", title_justify="left")
    for name in ("run", "engine", "configuration"):
        table.add_column(name, overflow="fold")
    for concurrency in concurrencies:
        table.add_column(str(concurrency), justify="right")
    for chosen, curve in rows:
        at = {p.concurrency: p for p in curve.points}
        cells = [_cell(at.get(c)) for c in concurrencies]
        table.add_row(
            Text(chosen.view.run), Text(_engine(chosen.view)), Text(_label(curve)), *map(Text, cells)
        )
    return table


def _cell(point: Point | None) -> str:
    if point is None:
        return "-"
    return rate(point.tok_s) if point.launches == 1 else f"{rate(point.tok_s)} ({point.launches})"


def _label(curve: Curve) -> str:
    return curve.label if curve.role in ("candidate", curve.label) else f"{curve.label}, {curve.role}"


def _engine(view: RunView) -> str:
    facts = view.ledger.facts
    return f"{facts.engine} {facts.engine_version or ''}".strip() if facts else ""


def _gain_line(chosen: Chosen) -> str:
    view = chosen.view
    gain = f"{effect_text(view.gain)} {view.gain_source}" if view.gain else "no gain proven"
    return f"{view.run}: goal {view.goal}, {view.status}, {gain}"


def _chosen_json(chosen: Chosen) -> dict[str, Any]:
    gain = chosen.view.gain
    return {
        "name": chosen.name,
        "simulated": chosen.view.simulated,
        "engine": _engine(chosen.view),
        "gain": gain.model_dump(mode="json") if gain else None,
        "configurations": [
            {"label": c.label, "role": c.role, "points": [vars(p) for p in c.points]} for c in chosen.curves()
        ],
    }
