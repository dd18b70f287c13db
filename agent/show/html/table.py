"""A table as the page's template draws it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "bad", "unsure", "quiet"]


@dataclass(frozen=True)
class Cell:
    """Text with a tone, and a link into the page where it has one."""

    text: str
    tone: Tone = ""
    link: str = ""


Row = Sequence[Cell | str]


@dataclass(frozen=True)
class Table:
    """Caption, heads (one that begins with # is of numbers) and rows; the first column names the row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column holds numbers."""
        return tuple(name.startswith("#") for name in self.head)

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads as they are shown."""
        return tuple(name.removeprefix("#") for name in self.head)


def table(caption: str, head: Sequence[str], rows: Iterable[Row]) -> Table:
    """A table of cells; plain text becomes a cell without tone."""
    made = tuple(tuple(c if isinstance(c, Cell) else Cell(c) for c in row) for row in rows)
    return Table(caption, tuple(head), made)
