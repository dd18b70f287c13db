"""The hypothesis log as a table, and one hypothesis whole."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table

from moeagent.agent.show.family import parent_text
from moeagent.agent.show.lines import rung_text
from moeagent.agent.show.plain import Text
from moeagent.agent.show.power import HEAD, power_rows
from moeagent.agent.show.text import (
    SIMULATED,
    STYLES,
    change_text,
    config_text,
    effect_text,
    percent,
    verdict_effect_text,
)
from moeagent.memory.records import Hypothesis, Launch, PredictedEffect, Rung, Verdict
from moeagent.memory.review import Review
from moeagent.memory.run_view import RunView

POWER_COLUMNS = (0, 1, 2, 3, 4, -1)
"""Of the table in the report, those that fit beside each other on a terminal."""


def print_log(view: RunView, console: Console, reviews: Sequence[Review] = ()) -> None:
    """The whole log: baseline, every hypothesis with its verdict, what reviewers wrote, what is best."""
    if view.simulated:
        console.print(Text(SIMULATED, style="bold yellow"))
    console.print(Text(f"run {view.run}  goal {view.goal}  {view.status}: {view.reason}".rstrip(": ")))
    if view.parent:
        console.print(Text(parent_text(view), style="cyan"))
    console.print(measured_table(view))
    console.print(hypotheses_table(view))
    for rejection in view.ledger.rejections:
        console.print(Text(f"turned down: {rejection.statement}: {rejection.reason}", style="dim"))
    for note in view.ledger.notes:
        console.print(Text(f"note on {note.about}: {note.text}", style="dim"))
    for review in reviews:
        console.print(review_text(review))
    power = power_table(view)
    if power is not None:
        console.print(power)
    console.print(best_text(view))


def review_text(review: Review) -> Text:
    """One line that a reviewer wrote."""
    return Text(
        f"{review.judgement or 'note'} by a reviewer, {review.about}: {review.text}".rstrip(": "), "yellow"
    )


def hypotheses_table(view: RunView) -> Table:
    """What, why, predicted, measured, verdict: a row each."""
    table = Table(title="hypotheses", title_justify="left", expand=True, show_lines=True)
    table.add_column("id", no_wrap=True)
    for name, share in (("what and why", 4), ("predicted", 2), ("measured", 2), ("verdict", 3)):
        table.add_column(name, ratio=share, overflow="fold")
    for hypothesis in view.ledger.hypotheses:
        verdict = view.ledger.verdict(hypothesis.id)
        table.add_row(
            Text(hypothesis.id),
            what_and_why(hypothesis),
            Text(predicted_text(hypothesis.predicted)),
            Text(verdict_effect_text(verdict)),
            verdict_text(verdict),
        )
    return table


def what_and_why(hypothesis: Hypothesis) -> Text:
    """Statement, change and reason."""
    return Text.assemble(
        hypothesis.statement, "\n", (change_text(hypothesis.change), "cyan"), "\n", (hypothesis.reason, "dim")
    )


def predicted_text(predicted: tuple[PredictedEffect, ...]) -> str:
    """The predicted effects, a line a rung."""
    lines = [f"{p.concurrency}: {percent(p.effect)} [{percent(p.low)}, {percent(p.high)}]" for p in predicted]
    return "\n".join(lines) or "-"


def verdict_text(verdict: Verdict | None) -> Text:
    """Verdict and its reason."""
    if verdict is None:
        return Text("open", style="dim")
    return Text.assemble((verdict.kind.value, STYLES[verdict.kind]), "\n", verdict.reason)


def measured_table(view: RunView) -> Table:
    """Output tok/s of every launch at each concurrency."""
    concurrencies = view.ladder
    table = Table(title="output tok/s by concurrency", title_justify="left", expand=True)
    for name in ("launch", "for"):
        table.add_column(name, no_wrap=True)
    for concurrency in concurrencies:
        table.add_column(str(concurrency), justify="right", no_wrap=True)
    table.add_column("outcome", ratio=1, overflow="fold")
    for launch in view.ledger.launches:
        by_concurrency = {r.concurrency: r for r in launch.rungs}
        cells = [_cell(by_concurrency.get(c)) for c in concurrencies]
        table.add_row(launch.id, launch.hypothesis or "baseline", *cells, outcome_text(launch))
    return table


def power_table(view: RunView) -> Table | None:
    """What the GPUs drew in the last launches of baseline and best; None when they were not sampled."""
    last = {launch.config.id: launch for launch in view.ledger.launches}
    shown = {config.id for config in (view.ledger.baseline, view.best) if config}
    rows = power_rows([launch for config, launch in last.items() if config in shown])
    if not rows:
        return None
    table = Table(title="GPUs under baseline and best", title_justify="left", expand=True)
    for place in POWER_COLUMNS:
        table.add_column(HEAD[place], justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[place]) for place in POWER_COLUMNS))
    return table


def _cell(rung: Rung | None) -> Text:
    if rung is None:
        return Text("")
    return Text(rung_text(rung), style="" if rung.usable else "red")


def outcome_text(launch: Launch) -> Text:
    """How the launch ended, with the class of its failure."""
    text = launch.outcome.value
    if launch.diagnosis:
        text += f": {launch.diagnosis.failure_class}"
    if launch.boundary and launch.boundary.first_failed:
        text += f" (good at {launch.boundary.last_good or '-'}, died at {launch.boundary.first_failed})"
    return Text(text, style="red" if launch.diagnosis else "")


def best_text(view: RunView) -> RenderableType:
    """The answer: the best configuration, its supported gain, its command."""
    if view.best is None:
        return Text("nothing was measured")
    who = view.ledger.incumbent.hypothesis if view.ledger.incumbent else None
    head = f"best so far: {who or 'the baseline'}"
    proven = f", {effect_text(view.gain)} {view.gain_source}" if view.gain else ", no change is proven better"
    lines = [Text(head + proven, style="bold"), Text(config_text(view.best), style="cyan")]
    command = view.command_of(view.best)
    return Group(*lines, *([Text(command)] if command else []))
