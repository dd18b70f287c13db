"""One hypothesis whole: what was claimed, what came of it, what it cost, and where the evidence lies."""

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table

from moeagent.agent.show.calibrated import calibration_sentence
from moeagent.agent.show.in_force import in_force_tables
from moeagent.agent.show.lines import rung_text
from moeagent.agent.show.log import outcome_text, review_text, verdict_text
from moeagent.agent.show.plain import Text
from moeagent.agent.show.power import power_sentence
from moeagent.agent.show.spent import took
from moeagent.agent.show.text import effect_text, flag_text, percent, seconds, verdict_effect_text
from moeagent.memory.errors import InputError
from moeagent.memory.records import Diagnosis, Hypothesis, Launch, ServerConfig, Verdict
from moeagent.memory.review import Review
from moeagent.memory.run_view import RunView


def print_hypothesis(
    view: RunView, hypothesis_id: str, console: Console, reviews: Sequence[Review] = ()
) -> None:
    """Print it. Raises InputError for an id that the run does not have."""
    hypothesis = view.ledger.hypothesis(hypothesis_id)
    if hypothesis is None:
        known = ", ".join(h.id for h in view.ledger.hypotheses) or "none"
        raise InputError(f"run {view.run} has no hypothesis {hypothesis_id!r}; it has {known}")
    launches = view.ledger.launches_for(hypothesis_id)
    about = {hypothesis_id, *(launch.id for launch in launches)}
    parts = [
        *_claim(view, hypothesis),
        *_outcome(view, hypothesis, launches),
        *(part for launch in launches for part in _launch(launch)),
        *in_force_tables(launches),
        *(review_text(review) for review in reviews if review.about in about),
    ]
    console.print(Panel(Group(*parts), title=Text(f"{view.run} {hypothesis_id}")))


def _claim(view: RunView, hypothesis: Hypothesis) -> Iterator[RenderableType]:
    yield Text(hypothesis.statement)
    yield Text(hypothesis.reason, style="dim")
    yield flag_diff(view, hypothesis)
    if hypothesis.prior:
        yield Text(f"known from {hypothesis.prior}", style="cyan")
    yield Text(f"by the {hypothesis.source}; refuted by: {hypothesis.refuted_by}")
    if hypothesis.risk:
        yield Text(f"risk {hypothesis.risk:.0%} {hypothesis.risk_why}")
    yield predicted_against_measured(hypothesis, view.ledger.verdict(hypothesis.id))
    for pivot in view.ledger.pivots_for(hypothesis.id):
        yield Text(f"pivot {pivot.attempt}: {pivot.remedy}", style="magenta")


def flag_diff(view: RunView, hypothesis: Hypothesis) -> Text:
    """Against the configuration that it changes: lines that go, lines that come."""
    change, before = hypothesis.change, _parent(view, hypothesis)
    flags, env = (before.flags, before.env) if before else ({}, {})
    gone = [flag_text(n, flags[n]) for n in sorted({*change.set_flags, *change.remove_flags}) if n in flags]
    gone += [f"{n}={env[n]}" for n in sorted({*change.set_env, *change.remove_env}) if n in env]
    come = [flag_text(n, value) for n, value in sorted(change.set_flags.items())]
    come += [f"{n}={value}" for n, value in sorted(change.set_env.items())]
    come += [f"install {change.install}"] if change.install else []
    lines = [(f"- {line}\n", "red") for line in gone] + [(f"+ {line}\n", "green") for line in come]
    return Text.assemble(*lines, end="")


def _parent(view: RunView, hypothesis: Hypothesis) -> ServerConfig | None:
    configs = (incumbent.config for incumbent in view.ledger.incumbents)
    return next((config for config in configs if config.id == hypothesis.parent), None)


def _launch(launch: Launch) -> Iterator[RenderableType]:
    yield Text.assemble((f"{launch.id}: ", "bold"), outcome_text(launch), f"\n{launch.command}")
    if launch.rungs:
        figures = ", ".join(f"{rung.concurrency}: {rung_text(rung)}" for rung in launch.rungs)
        yield Text(f"output tok/s at {figures}")
    for rung in launch.rungs:
        if told := power_sentence(rung):
            yield Text(told, style="dim")
    if launch.diagnosis:
        yield diagnosis_text(launch.diagnosis)
    yield Text(evidence(launch), style="dim")


def evidence(launch: Launch) -> str:
    """Files of the run's folder that a launch rests on, with the line that matters."""
    line = launch.diagnosis.line_no if launch.diagnosis else None
    log = [f"logs/{launch.log}.gz" + (f" line {line}" if line else "")] if launch.log else []
    raw = [f"load/{rung.raw}.bin at {rung.concurrency}" for rung in launch.rungs if rung.raw]
    return f"evidence: {', '.join([*log, *raw]) or 'none was kept'}"


def _outcome(view: RunView, hypothesis: Hypothesis, launches: Sequence[Launch]) -> Iterator[RenderableType]:
    verdict = view.ledger.verdict(hypothesis.id)
    yield verdict_text(verdict)
    if verdict:
        yield Text(f"measured {verdict_effect_text(verdict)}")
        if told := calibration_sentence([(hypothesis.id, score) for score in verdict.predictions]):
            yield Text(f"taught: {told}")
    yield Text(cost_text(launches), style="dim")


def cost_text(launches: Sequence[Launch]) -> str:
    """Launches, time and energy that it took."""
    together = took(launches)
    energy = "" if together.energy_kwh is None else f", {together.energy_kwh:.3f} kWh"
    times = f"{seconds(together.starting_s)} starting, {seconds(together.measuring_s)} measuring"
    return f"cost: {len(launches)} launches, {times}{energy}"


def predicted_against_measured(hypothesis: Hypothesis, verdict: Verdict | None) -> Table:
    """A row per rung."""
    table = Table("concurrency", "predicted", "measured")
    measured = {e.concurrency: e for e in verdict.effects} if verdict else {}
    predicted = {p.concurrency: p for p in hypothesis.predicted}
    for concurrency in sorted({*predicted, *(c for c in measured if c is not None)}):
        expected = predicted.get(concurrency)
        told = (
            f"{percent(expected.effect)} [{percent(expected.low)}, {percent(expected.high)}]"
            if expected
            else "-"
        )
        table.add_row(str(concurrency), told, effect_text(measured.get(concurrency)))
    return table


def diagnosis_text(diagnosis: Diagnosis) -> Text:
    """Class, causing line, remedies."""
    lines = [f"{diagnosis.failure_class} ({diagnosis.confidence:.0%}): {diagnosis.explanation}"]
    if diagnosis.root_line:
        lines.append(f"line {diagnosis.line_no}: {diagnosis.root_line}")
    lines += [f"remedy: {r.direction} {r.target}: {r.change} ({r.why})" for r in diagnosis.remedies]
    return Text("\n".join(lines))
