"""Single keys from a terminal."""

import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ARROWS = {"\x1b[C": " ", "\x1b[B": " ", "\x1b[D": "b", "\x1b[A": "b"}
"""Right and down go on, left and up go back."""


@contextmanager
def keys() -> Iterator[Callable[[], str]]:
    """What waits for the next key; empty at the end of the input. Ctrl-C interrupts as ever."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    waiting: list[str] = []

    def key() -> str:
        if not waiting:
            typed = os.read(fd, 64).decode("utf-8", "replace")
            waiting.extend([ARROWS.get(typed, "?")] if typed.startswith("\x1b") else typed)
        return waiting.pop(0) if waiting else ""

    # Once for all keys: what is typed while the terminal changes its mode would be lost.
    tty.setcbreak(fd)
    try:
        yield key
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
