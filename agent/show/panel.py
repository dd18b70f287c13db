"""The live view: one screen, or a few plain lines, of a run that works."""

import shlex
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from moeagent.agent.show.family import parent_text
from moeagent.agent.show.lines import rung_text
from moeagent.agent.show.log import best_text, verdict_text
from moeagent.agent.show.plain import Text
from moeagent.agent.show.power import power_sentence
from moeagent.agent.show.status import Standing
from moeagent.agent.show.text import SIMULATED, rate, seconds, verdict_effect_text
from moeagent.agent.show.under_way import UnderWay
from moeagent.agent.show.visible import short
from moeagent.memory.records import Rung

LAST = 5
"""Hypotheses that are shown."""
BAR = 24


def status_screen(found: Standing, now: float) -> RenderableType:
    """Everything about a run at this moment, in seconds since the epoch."""
    view = found.view
    parts: list[RenderableType] = [Text(SIMULATED, style="bold yellow")] if view.simulated else []
    reason = f": {view.reason}" if found.ended and view.reason else ""
    parts.append(Text(f"run {view.run}  goal {view.goal}  {found.status}{reason}"))
    parts += [Text(f"by {found.worker}", style="dim")] if found.worker and found.doing else []
    parts += [Text(parent_text(view), style="cyan")] if view.parent else []
    parts += list(_now(found, now))
    parts.append(spent_text(found))
    parts += list(_hypotheses(found))
    return Group(*parts, best_text(view))


def live_panel(found: Standing, now: float) -> RenderableType:
    """What stays below the lines that scroll by: step, ladder, GPUs, budget, best."""
    return Group(*_now(found, now), spent_text(found), best_line(found))


def spent_text(found: Standing) -> Text:
    """Time at work and what is left of each limit."""
    used = ", ".join(f"{used:g} of {limit:g} {name}" for name, (used, limit) in found.budget.items())
    return Text(f"spent: {seconds(found.spent.active_s)} at work; {used}")


def best_line(found: Standing) -> Text:
    """The best so far against the baseline, without its command."""
    view = found.view
    if view.best is None:
        return Text("nothing is measured yet", style="dim")
    who = view.ledger.incumbent.hypothesis if view.ledger.incumbent else None
    told = _top(found, "best so far") if who else _top(found, "baseline")
    proven = (
        f"{who}: {verdict_effect_text(view.best_verdict)} {view.gain_source}"
        if who
        else "no better one is proven yet"
    )
    return Text(f"{told}; {proven}", style="bold")


def _top(found: Standing, name: str) -> str:
    view = found.view
    launches = view.ledger.launches_of(view.best) if view.best else []
    rungs = [r for launch in launches for r in launch.rungs if r.usable]
    top = max(rungs, key=lambda r: r.output_tok_s or 0.0, default=None)
    return f"{name} {rate(top.output_tok_s)} tok/s at {top.concurrency}" if top else name


def _now(found: Standing, now: float) -> Iterator[RenderableType]:
    step = found.step
    if found.doing and not found.worker:
        told = f"it was cut while {found.doing}: moeagent resume {shlex.quote(found.view.run)} goes on"
        yield Text(told, style="yellow")
        return
    if not found.doing:
        return
    elapsed = max(0.0, now - step.began_at) if step else 0.0
    yield Text(f"now: {found.doing}{_times(step, elapsed)}", style="bold blue")
    if step is None:
        return
    if step.launch:
        yield from _ladder(found, step, elapsed)
    if step.pulse and step.pulse.text and not step.pulse.total:
        yield Text(f"log: {short(step.pulse.text)}", style="dim")
    yield from _gpus(found, step)


def _times(step: UnderWay | None, elapsed: float) -> str:
    if step is None:
        return ""
    about = f" of about {seconds(step.expected_s)}" if step.expected_s else ""
    return f", {seconds(elapsed)}{about}"


def _ladder(found: Standing, step: UnderWay, elapsed: float) -> Iterator[RenderableType]:
    """Each rung of the launch: measured, filling up, or still to come."""
    done = {rung.concurrency: rung for rung in step.rungs}
    planned = sorted({*found.view.ladder, *done, *([step.concurrency] if step.concurrency else [])})
    line = Text.assemble((f"{step.launch} for {step.hypothesis or 'the baseline'}:", "bold"))
    for concurrency in planned:
        line.append(f"  {concurrency}: ", "dim")
        line.append(*_rung(done.get(concurrency), filling=concurrency == step.concurrency))
    yield line
    if step.concurrency:
        yield _filling(step, elapsed)


def _rung(rung: Rung | None, *, filling: bool) -> tuple[str, str]:
    if filling:
        return "now", "bold blue"
    if rung is None:
        return "-", "dim"
    return rung_text(rung), "green" if rung.usable else "red"


def _filling(step: UnderWay, elapsed: float) -> RenderableType:
    """How far the rung is: by its requests, else by the time that such a rung takes."""
    pulse = step.pulse
    if pulse and pulse.total:
        share, told = (
            pulse.done / pulse.total,
            f"{pulse.done} of {pulse.total} requests, {rate(pulse.rate)} tok/s",
        )
    elif step.expected_s:
        share, told = min(0.99, elapsed / step.expected_s), "by the time that it took before"
    else:
        return Text("  how long it takes is not known yet", style="dim")
    grid = Table.grid(padding=(0, 1))
    grid.add_row(
        Text(f"  {step.concurrency}:"),
        ProgressBar(total=1.0, completed=share, width=BAR, complete_style="blue"),
        Text(f"{share:.0%}, {told}"),
    )
    return grid


def _gpus(found: Standing, step: UnderWay) -> Iterator[Text]:
    """The last rung whose GPUs were sampled; before the first one, what the survey saw."""
    launches = found.view.ledger.launches
    rungs = (*(r for launch in launches[-1:] for r in launch.rungs), *step.rungs)
    sampled = [told for rung in rungs if (told := power_sentence(rung))]
    facts = found.view.ledger.facts
    if sampled:
        yield Text(f"{sampled[-1]}", style="dim")
    elif facts and facts.host.gpus:
        used = sum(gpu.memory_used_mib for gpu in facts.host.gpus) / 1024
        size = sum(gpu.memory_mib for gpu in facts.host.gpus) / 1024
        yield Text(
            f"GPUs: {len(facts.host.gpus)}, {used:.0f} of {size:,.0f} GiB were in use at the survey",
            style="dim",
        )


def _hypotheses(found: Standing) -> Iterator[Text]:
    for hypothesis in found.view.ledger.hypotheses[-LAST:]:
        verdict = found.view.ledger.verdict(hypothesis.id)
        head = Text.assemble((f"{hypothesis.id} ", "bold"), hypothesis.statement[:200], "\n    ")
        effect = verdict_effect_text(verdict) if verdict else ""
        yield Text.assemble(head, Text(": ").join(verdict_text(verdict).split("\n")), f"  {effect}")
