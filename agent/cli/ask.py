"""Asking the engineer on the terminal, or taking the answer from the command line."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from moeagent.memory.records.approval import Answer, Question, Said

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

CHOICES: dict[str, Answer] = {"y": "yes", "n": "no", "skip": "skip"}


def ask_engineer(question: Question) -> Said:
    """yes, no or skip from the terminal; `awaiting` where nobody can answer."""
    if not sys.stdin.isatty():
        return Said(answer="awaiting", by="no terminal to ask on")
    from rich.prompt import Prompt

    from moeagent.agent.show.text import console

    target: Console = console(stderr=True)
    target.print(shown(question))
    try:
        word = Prompt.ask("Launch it? skip leaves it for later", console=target, choices=list(CHOICES))
    except EOFError:
        return Said(answer="awaiting", by="the terminal was closed")
    return Said(answer=CHOICES[word], by=who())


def answer_once(answer: Answer) -> Callable[[Question], Said]:
    """Gives the first question the answer from the command line; asks on the terminal from then on."""
    left = [answer]

    def approver(question: Question) -> Said:
        if left:
            return Said(answer=left.pop(), by=f"{who()} on the command line")
        return ask_engineer(question)

    return approver


def shown(question: Question) -> "RenderableType":
    """The question as a person reads it: what, the whole command, risk, effect and cost."""
    from rich.panel import Panel
    from rich.table import Table

    from moeagent.agent.show.plain import Text

    remedy = f", remedy {question.attempt}" if question.attempt else ""
    rows = {
        "change": question.change,
        "command": question.command,
        "risk": f"{question.risk:.0%} {question.risk_why}".strip(),
        "predicted": question.predicted or "no effect can be predicted",
        "takes": cost_text(question),
        "asked by": question.why,
    }
    grid = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        grid.add_row(Text(name, style="dim"), Text(value))
    return Panel(grid, title=Text(f"{question.hypothesis}{remedy}: {question.statement}"), title_align="left")


def cost_text(question: Question) -> str:
    """Time, GPU-hours and money of the launch."""
    price = "" if question.cost is None else f", costs about {question.cost:.2f}"
    return f"about {question.expected_s / 60:.1f} minutes, {question.gpu_hours:.2f} GPU-hours{price}"


def who() -> str:
    """The person at the keyboard, for the tape."""
    import getpass
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()}"
