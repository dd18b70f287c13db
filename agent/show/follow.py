"""Following a run, from any terminal, by reading its tape as it grows."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.live import Live

from moeagent.agent.show.as_json import json_line
from moeagent.agent.show.lines import lines_of
from moeagent.agent.show.panel import status_screen
from moeagent.agent.show.plain import Text
from moeagent.agent.show.screen import REFRESH_PER_S, SHARE, Screen
from moeagent.agent.show.status import Standing, standing
from moeagent.memory.ledger import decision_of
from moeagent.memory.lock import look
from moeagent.memory.pulse import Pulse, read_pulse
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Entry

POLL_S = 0.5
Show = Callable[[Standing, list[Entry]], None]


def follow(folder: RunFolder, show: Show, over: Event | None = None) -> None:
    """Call `show` with the standing and the new decisions whenever the tape grew.

    Returns once `over` is set, after a last look; without it when the run has ended, or when no process works
    on it.
    """
    seen = 0
    for _ in _growth(folder, over):
        decisions = [entry for entry in folder.read_tape().entries if entry.type == "decision"]
        now = standing(folder)
        if over is not None and not (now.ended or now.worker or over.is_set()):
            continue  # this process takes up its own run in a moment: it is not cut off
        show(now, list(islice(decisions, seen, None)))
        seen = len(decisions)
        if over is None and (now.ended or not now.worker):
            return


def as_lines(target: Console) -> Show:
    """Plain lines: each decision once, and what is being done when that changes."""
    told = [""]

    def show(now: Standing, fresh: list[Entry]) -> None:
        for entry in fresh:
            for line in lines_of(decision_of(entry)):
                target.print(line)
        if now.doing and not now.worker:
            target.print(Text(f"cut off while {now.doing}: no process works on this run", style="yellow"))
        elif now.doing and now.doing != told[0]:
            target.print(Text(f"  {now.doing}", style="dim"))
        told[0] = now.doing

    return show


def as_events(write: Callable[[str], Any]) -> Show:
    """One JSON object a line: decisions as they stand on the tape, and what is being done."""

    def show(now: Standing, fresh: list[Entry]) -> None:
        for entry in fresh:
            write(json_line({"line": entry.line_no, **entry.body}))
        step = now.step.to_json(time.time()) if now.step else None
        told = {"doing": now.doing, "status": now.status, "step": step}
        write(json_line(told))

    return show


@contextmanager
def streamed(folder: RunFolder, write: Callable[[str], Any]) -> Iterator[None]:
    """The events of a run that this process works on, written beside the work until it is over."""
    over = Event()

    def tell() -> None:
        with suppress(BrokenPipeError):  # its reader left: the run goes on
            follow(folder, as_events(write), over)

    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def on_screen(folder: RunFolder, target: Console) -> None:
    """One screen that is kept up to date."""
    screen = Screen(folder, status_screen)
    with Live(console=target, refresh_per_second=REFRESH_PER_S, get_renderable=screen):
        follow(folder, lambda now, _: None)


def _growth(folder: RunFolder, over: Event | None) -> Iterator[None]:
    """Once at the start, then whenever the tape has grown, the pulse has beaten or the worker is gone."""
    before: tuple[int, Pulse | None, bool] | None = None
    waiting = over or Event()
    while True:
        last, began = waiting.is_set(), time.monotonic()
        size = folder.tape.stat().st_size
        now = size, read_pulse(folder.path, size), look(folder.path).alive
        if now != before:
            yield
        if last:
            return
        before = now
        waiting.wait(max(POLL_S, SHARE * (time.monotonic() - began)))
