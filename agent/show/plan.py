"""A plan for people: each command whole, and what is expected of it."""

from rich.console import Console

from moeagent.agent.planning import CampaignPlan, PlannedLaunch
from moeagent.agent.show.plain import Text
from moeagent.agent.show.text import SIMULATED, percent


def show_plan(plan: CampaignPlan, target: Console) -> None:
    """Print it all; commands are not wrapped, so that they can be copied."""
    if plan.simulated:
        target.print(Text(SIMULATED, style="bold yellow"))
    _say(target, f"host {plan.host}; {plan.engine}; model {plan.model or 'none'}")
    for problem in plan.problems:
        _say(target, f"  {problem}", "yellow")
    _say(target, "survey (read-only)" if plan.surveyed else "survey (left out by --offline)", "bold")
    for probe in plan.survey:
        _say(target, f"  {probe.name}: {first_line(probe.command)}", "dim")
    for launch in plan.launches:
        _launch(target, launch, plan.baseline_launches if launch is plan.launches[0] else 1)
    if plan.no_more_ideas:
        _say(target, f"no further idea: {plan.no_more_ideas}")
    if plan.ended_before:
        _say(target, f"nothing would be launched: {plan.ended_before}", "bold red")
    total = cost_text(plan.minutes, plan.gpu_hours, plan.cost)
    _say(target, f"these launches, each idea once: {total}. Nothing was launched.", "bold")


def _launch(target: Console, launch: PlannedLaunch, times: int) -> None:
    _say(target, f"{launch.title}{f', {times} times' if times > 1 else ''}", "bold")
    effects = ", ".join(f"{p.concurrency}: {percent(p.effect)}" for p in launch.predicted)
    speeds = ", ".join(f"{concurrency}: {value:,.0f}" for concurrency, value in launch.tok_s.items())
    ruling = launch.approval
    rows = {
        "change": launch.change,
        "preflight": launch.preflight or "nothing stands against it",
        "approval": f"{ruling.action} by {ruling.by}{': ' + ruling.reason if ruling.reason else ''}",
        "memory": launch.memory or "not predicted",
        "tok/s": speeds or "not predicted",
        "effect": effects,
        "risk": f"{launch.risk:.0%} {launch.risk_why}".strip(),
        "takes": f"{cost_text(launch.minutes, launch.gpu_hours, launch.cost)} ({launch.basis})",
        "start": launch.start or "never passed on",
        "load": launch.load,
        "stop": launch.stop,
    }
    for name, value in rows.items():
        if value:
            _say(target, f"  {name:<9} {value}")


def cost_text(minutes: float, gpu_hours: float, cost: float | None) -> str:
    """Time, GPU-hours and money."""
    price = "" if cost is None else f", costs about {cost:,.2f}"
    return f"about {minutes:,.1f} minutes, {gpu_hours:,.2f} GPU-hours{price}"


def first_line(command: str) -> str:
    """A script's first line, and how many follow."""
    first, *rest = command.splitlines() or [""]
    return f"{first} [{len(rest)} more lines]" if rest else first


def _say(target: Console, text: str, style: str = "") -> None:
    target.print(Text(text, style=style), soft_wrap=True)
