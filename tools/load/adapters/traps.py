"""The catalogue of known traps, as data."""

import json
from functools import cache
from importlib.resources import files

from moeagent.memory.records import Record
from moeagent.tools.load.adapters.records import ToolName, Trap


class TrapEntry(Record):
    """One trap of the catalogue."""

    tools: tuple[ToolName, ...]
    consequence: str
    source: str


@cache
def catalogue() -> dict[str, TrapEntry]:
    """All known traps by name."""
    text = files("moeagent.tools.load.adapters").joinpath("traps.json").read_text(encoding="utf-8")
    return {name: TrapEntry.model_validate(entry) for name, entry in json.loads(text).items()}


def traps_of(tool: ToolName, *, corrected: frozenset[str] = frozenset()) -> tuple[Trap, ...]:
    """The traps of one tool; `corrected` names those that the import worked around."""
    return tuple(
        Trap(name=name, consequence=entry.consequence, corrected=name in corrected)
        for name, entry in catalogue().items()
        if tool in entry.tools
    )
