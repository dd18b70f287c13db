"""Pieces of Markdown in which text of others stays text."""

from collections.abc import Iterable, Sequence

from moeagent.agent.show.visible import visible


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; cell text cannot break out of its cell."""
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(' --- ' for _ in head)}|"]
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return [*lines, ""]


def cell(text: str) -> str:
    """Text that is data: Markdown and HTML in it stay visible and inert."""
    flat = visible(" ".join(text.split()))
    for mark in "\\`*_|[]<>#":
        flat = flat.replace(mark, {"<": "&lt;", ">": "&gt;"}.get(mark, f"\\{mark}"))
    return flat


def code(text: str) -> list[str]:
    """Text as a block that nothing inside can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, *visible(text).splitlines(), fence, ""]
