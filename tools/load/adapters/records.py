"""A figure of another load generator, with what is wrong with it."""

from typing import Literal

from moeagent.memory.records import Record, Rung

ToolName = Literal["sglang-py", "sglang-rust", "vllm-py", "vllm-rs", "guidellm"]


class Trap(Record):
    """One known way in which a tool's figures mislead."""

    name: str
    consequence: str
    corrected: bool = False
    """True when the figure below is not the tool's own but worked out from its per-request data."""


class ForeignRung(Record):
    """One run of another tool. Never compared with a rung of any other tool."""

    tool: ToolName
    rung: Rung
    traps: tuple[Trap, ...]


class MixedToolsError(ValueError):
    """Figures of different tools were about to be compared."""


def same_tool(rungs: tuple[ForeignRung, ...]) -> ToolName:
    """The one tool of these rungs; MixedToolsError when they are of several: each counts in its own way."""
    tools = sorted({r.tool for r in rungs})
    if len(tools) != 1:
        raise MixedToolsError(f"figures of {', '.join(tools) or 'no tool'} cannot be compared: use one tool")
    return rungs[0].tool
