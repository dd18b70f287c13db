"""Watching a run from the terminal that started it: decisions as they fall, and a live panel below them."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import typer
from rich.console import Console
from rich.live import Live

from moeagent.agent.events import Asking, Decided, Event, Events, Progress, StepBegan, Warned
from moeagent.agent.limits import model_hint, raise_hint
from moeagent.agent.show.as_json import print_json
from moeagent.agent.show.follow import streamed
from moeagent.agent.show.lines import lines_of
from moeagent.agent.show.log import best_text, hypotheses_table, measured_table
from moeagent.agent.show.panel import live_panel
from moeagent.agent.show.plain import Text
from moeagent.agent.show.screen import REFRESH_PER_S, PulseWriter, Screen
from moeagent.agent.show.text import SIMULATED, console
from moeagent.memory.errors import Interrupted, MoeagentError
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.run_view import RunView

QUIET_STEPS = ("propose", "vet", "approve", "record", "pivot", "diagnose", "judge", "report", "baseline")

TOLD_APART = 60
"""Letters by which two lines of a server's log differ: a progress bar that moves says nothing new."""


Output = Literal["text", "json", "events"]
"""What goes to standard output: words, one JSON object at the end, or a JSON object a line on the way."""


class Watch:
    """Prints decisions as they fall and keeps the live panel below them where the terminal can move."""

    def __init__(self, target: Console, folder: RunFolder) -> None:
        self._console = target
        self._live: Live | None = None
        if target.is_terminal and not target.is_dumb_terminal:
            screen = Screen(folder, live_panel)
            self._live = Live(
                console=target, transient=True, refresh_per_second=REFRESH_PER_S, get_renderable=screen
            )
        self._last_said = ""

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show one event; while a person is asked, nothing moves on the terminal."""
        if self._live and not self._live.is_started:
            self._live.start()
        match event:
            case Asking() if self._live:
                self._live.stop()
            case Decided():
                for line in lines_of(event.record):
                    self._console.print(line)
            case StepBegan():
                self._step(event)
            case Progress():
                self._progress(event)
            case Warned():
                self._console.print(Text(f"warning: {event.text}", style="yellow"))

    def _step(self, event: StepBegan) -> None:
        if not self._live and event.about and event.step not in QUIET_STEPS:
            self._console.print(Text(f"{event.step} {event.about}", style="dim"))

    def _progress(self, event: Progress) -> None:
        said = "".join(filter(str.isalpha, event.text))[:TOLD_APART]
        if not self._live and not event.total and said != self._last_said:
            self._last_said = said
            self._console.print(Text(f"  {event.step}: {event.text}", style="dim"))


@contextmanager
def watched(folder: RunFolder, root: Path, *, output: Output, command: str = "moeagent") -> Iterator[Events]:
    """Events with a watcher on standard output, or on standard error where JSON goes to standard output.

    Whatever happens, the last lines say how it stands, what is best so far and which command comes next.
    """
    target = console(stderr=output != "text")
    events = Events()
    error: MoeagentError | None = None
    pulse = PulseWriter(folder)
    stream = streamed(folder, typer.echo) if output == "events" else nullcontext()
    with stream, Watch(target, folder) as watch:
        events.listeners += [pulse, watch]
        try:
            yield events
        except MoeagentError as raised:
            error = raised
        finally:
            pulse.close()
    view = RunView.read(folder)
    if output == "json":
        print_json(view.to_json())
    else:
        print_end(view, target)
    print_next(view, root, command, error, target)
    if error is not None:
        raise error


def print_end(view: RunView, target: Console) -> None:
    """The verdict table and the answer."""
    if view.ledger.launches:
        target.print(measured_table(view))
    if view.ledger.hypotheses:
        target.print(hypotheses_table(view))
    if view.simulated:
        target.print(Text(SIMULATED, style="bold yellow"))
    target.print(best_text(view))


def print_next(view: RunView, root: Path, command: str, error: MoeagentError | None, target: Console) -> None:
    """The exact next commands."""
    run = shlex.quote(view.run)
    where = "" if root == Path("runs") else f" --runs {shlex.quote(str(root))}"
    target.print(
        Text(f"run {view.run} {view.status}{': ' + view.reason if view.reason else ''}", style="bold")
    )
    hint = raise_hint(view.reason)
    if view.status == "awaiting approval":
        for answer in ("--approve-next", "--decline-next", "--skip-next"):
            target.print(Text(f"go on:  {command} resume {run} {answer}{where}"))
    elif view.status in ("started", "stopped") or isinstance(error, Interrupted):
        target.print(Text(f"go on:  {command} resume {run}{where}"))
    elif hint:
        target.print(Text(f"go on:  {command} resume {run} {hint}{where}"))
    silenced = model_hint(note.text for note in view.ledger.notes)
    if silenced:
        target.print(Text(f"the language model reached its limit: {silenced} lets it go on"))
    for name in ("report", "log", "replay"):
        target.print(Text(f"next:   {command} {name} {run}{where}"))
    sys.stdout.flush()
