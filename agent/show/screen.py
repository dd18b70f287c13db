"""A run on a terminal, kept up to date by reading what its process writes."""

import time
from collections.abc import Callable
from dataclasses import replace

from rich.console import RenderableType

from moeagent.agent.events import Event, Progress
from moeagent.agent.show.status import Standing, standing
from moeagent.memory.pulse import Pulse, PulseFile, read_pulse
from moeagent.memory.run_folder import RunFolder

REFRESH_PER_S = 2
SHARE = 10
"""Reading a long tape may take a tenth of the time, not more."""


class Screen:
    """Draws a run whenever it is called; its tape is read again only where it has grown."""

    def __init__(self, folder: RunFolder, draw: Callable[[Standing, float], RenderableType]) -> None:
        self._folder, self._draw = folder, draw
        self._size = 0
        self._not_before = 0.0
        self._found: Standing | None = None

    def __call__(self) -> RenderableType:
        """The run at this moment."""
        size = self._folder.tape.stat().st_size
        if self._found is None or (size != self._size and time.monotonic() >= self._not_before):
            self._read()
        assert self._found is not None
        found = self._found
        if found.step:
            step = replace(found.step, pulse=read_pulse(self._folder.path, self._size))
            found = replace(found, step=step)
        return self._draw(found, time.time())

    def _read(self) -> None:
        began = time.monotonic()
        self._size = self._folder.tape.stat().st_size
        self._found = standing(self._folder)
        now = time.monotonic()
        self._not_before = now + SHARE * (now - began)


class PulseWriter:
    """Passes on what moves inside a step to readers in other terminals."""

    def __init__(self, folder: RunFolder) -> None:
        self._tape, self._file = folder.tape, PulseFile(folder.path)

    def __call__(self, event: Event) -> None:
        """Write one piece of progress."""
        if isinstance(event, Progress):
            size = self._tape.stat().st_size
            moved = Pulse(
                tape_bytes=size, text=event.text, done=event.done, total=event.total, rate=event.rate
            )
            self._file.write(moved)

    def close(self) -> None:
        """The run is over."""
        self._file.remove()
