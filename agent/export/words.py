"""A launch command whose secrets are places to be filled: what every export format is written from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from moeagent.memory.errors import InputError


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a secret: the variable that has to hold it where the server is started."""

    variable: str


Word = tuple[str | Slot, ...]
"""One argument or one variable's value: its text, with slots where secrets stood."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a server was started."""

    argv: tuple[Word, ...]
    env: dict[str, Word]
    cwd: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The variables that have to be set, in the order of their first use."""
        words = (*self.env.values(), *self.argv)
        return tuple(
            dict.fromkeys(part.variable for word in words for part in word if isinstance(part, Slot))
        )


def spelled(word: Word, text: Callable[[str], str], slot: Callable[[str], str]) -> str:
    """A word in a format: its texts by `text`, its slots by `slot`, one after the other."""
    return "".join(slot(part.variable) if isinstance(part, Slot) else text(part) for part in word)


def plain_text(word: Word) -> str:
    """The word's text. Raises InputError where it holds a secret."""
    if slots := [part.variable for part in word if isinstance(part, Slot)]:
        raise InputError(f"a secret ({slots[0]}) stands where no format can take it from a variable")
    return "".join(part for part in word if isinstance(part, str))


def texts(start: Start) -> Iterator[str]:
    """Every text of a start."""
    yield start.cwd or ""
    for word in (*start.argv, *start.env.values()):
        yield from (part for part in word if isinstance(part, str))
