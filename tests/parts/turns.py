"""Turns among the workers of a test run: a test that measures a real effect runs while no other test does."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__)
"""Locked by each test while it runs: shared by most, by one alone that measures."""
QUEUE = HERE.with_name("catalogue.py")
"""Locked while waiting for that, so that who wants to be alone is not overtaken for ever."""


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Wait for a turn, and keep it until the block ends."""
    with QUEUE.open() as queue, HERE.open() as floor:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(floor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(floor, fcntl.LOCK_UN)
