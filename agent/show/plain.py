"""Text for the terminal that cannot command it."""

from typing import Any, Self

from rich import text as rich_text
from rich.style import Style

from moeagent.agent.show.visible import visible


class Text(rich_text.Text):
    """Rich's text, in which escape sequences and other control characters of others become readable."""

    def __init__(self, text: str = "", style: str | Style = "", **other: Any) -> None:
        super().__init__(visible(text), style, **other)

    @classmethod
    def assemble(cls, *parts: Any, **other: Any) -> Self:
        """Text of parts: plain strings, (string, style) pairs, or texts."""
        made = super().assemble(*parts, **other)
        assert isinstance(made, cls)
        return made

    def append(self, text: rich_text.Text | str, style: str | Style | None = None) -> Self:
        """Add text with a style."""
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self
