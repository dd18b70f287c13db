"""Ctrl-C and SIGTERM ask for a stop; the loop stops at the next safe point."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from moeagent.memory.errors import Interrupted, Paused


class StopRequest:
    """Set by a signal, checked before each effect and polled by long ones."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.signal_name = ""
        self._pause = ""

    def __call__(self) -> bool:
        """True once a stop was asked for."""
        return self._event.is_set()

    def ask(self, name: str) -> None:
        """Ask for a stop."""
        self.signal_name = name
        self._event.set()

    def ask_for_pause(self, why: str) -> None:
        """Ask for a stop that the engineer planned."""
        self._pause = why
        self._event.set()

    def check(self) -> None:
        """Raise Interrupted, or Paused, at a safe point once a stop was asked for."""
        if self() and self._pause and not self.signal_name:
            raise Paused(self._pause)
        if self():
            raise Interrupted(f"stopped by {self.signal_name or 'request'}")


@contextmanager
def stop_on_signals(request: StopRequest) -> Iterator[None]:
    """SIGINT and SIGTERM set the request; a second one has its usual effect, for the impatient."""

    def handler(number: int, frame: FrameType | None) -> None:
        for each, old in previous.items():
            signal.signal(each, old)
        request.ask(signal.Signals(number).name)

    previous = {each: signal.signal(each, handler) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, old in previous.items():
            signal.signal(each, old)
