"""What an export format gets, whatever the format."""

from dataclasses import dataclass

from moeagent.agent.export.words import Start


@dataclass(frozen=True, slots=True)
class Export:
    """One measured start and what has to be said about it."""

    name: str
    """For services: lower case letters, digits and dashes, at most 63 characters (a DNS label)."""
    start: Start
    model: str
    """Path or name of the model, as measured."""
    gpus: int
    """GPUs of the machine on which it was measured; 0 on a machine without."""
    about: tuple[str, ...]
    """What it is and what it rests on, a line each."""
    image: str | None = None
    """For containers; None: a place that has to be filled."""


def comments(export: Export) -> list[str]:
    """The lines about an export as comments of every format; no text of a run ends one early."""
    return [f"# {_one_line(line)}" for line in export.about]


def _one_line(text: str) -> str:
    """Printable characters only, and no backslash at the end, which would join the next line to this one."""
    return "".join(c if c.isprintable() else "?" for c in text).rstrip("\\")
