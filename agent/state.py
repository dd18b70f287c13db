"""What travels along the graph's edges: identifiers and scalars; data lives in ledger and run folder."""

from typing import Literal, TypedDict


class State(TypedDict, total=False):
    """The graph's state; a node returns the keys that it changes."""

    phase: Literal["baseline", "explore", "confirm"]
    hypothesis: str | None
    """The hypothesis at work; None for the baseline."""
    config: str
    """Id of the configuration to launch next."""
    attempt: int
    """Remedies tried for this hypothesis so far."""
    rejected: int
    """Ideas that were turned down in a row."""
    next: str
    """Which node the last one asks for, where it has a choice."""
    stop: str
    """Why the campaign ends; empty while it goes on."""
