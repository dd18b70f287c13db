"""Decisions then and now, for a person."""

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from moeagent.agent.rethink import Rethinking, Rethought
from moeagent.agent.show.visible import short


def print_rethinking(found: Rethinking, console: Console) -> None:
    """What differs, then how many decisions do."""
    for decision in found.decisions:
        if decision.outcome == "differs":
            console.print(decision_text(decision), soft_wrap=True)
    counts = ", ".join(f"{number} {outcome}" for outcome, number in found.counts().items())
    console.print(
        Text(
            f"{found.run}, recorded by moeagent {found.moeagent} (loop version {found.loop}): "
            f"{len(found.decisions)} decisions, {counts}"
        ),
        soft_wrap=True,
    )


def decision_text(decision: Rethought) -> Text:
    """One decision that differs, with both values of each field."""
    head = f"line {decision.line}: {decision.kind} {decision.about}".rstrip()
    text = Text(f"{head} differs" + (f": {decision.why}" if decision.why else ""), style="bold")
    for change in decision.changes:
        text.append(f"\n  {change.field or decision.kind}\n", style="not bold")
        text.append(f"    recorded  {value_text(change.recorded)}\n", style="not bold red")
        text.append(f"    now       {value_text(change.now)}", style="not bold green")
    return text


def value_text(value: Any) -> str:
    """The beginning of a value, - for none; --json holds it whole."""
    if value is None:
        return "-"
    return short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
