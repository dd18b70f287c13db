"""`moeagent replay`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot
from moeagent.memory.errors import InputError
from moeagent.memory.run_folder import RunFolder, find_run

if TYPE_CHECKING:
    from moeagent.agent.show.moments import Moment


def command(
    run: RunName,
    rethink: Annotated[
        bool,
        typer.Option("--rethink", help="Make every recorded decision again; report those that now differ."),
    ] = False,
    signatures: Annotated[
        list[Path] | None, typer.Option(help="With --rethink: TOML file of your own failure signatures.")
    ] = None,
    step: Annotated[
        bool, typer.Option("--step", help="Go through the recording key by key, on a terminal.")
    ] = False,
    until: Annotated[
        str,
        typer.Option(
            metavar="N|ID", help="Show the recording up to a tape line or id; with --step begin there."
        ),
    ] = "",
    speed: Annotated[
        float | None, typer.Option(min=0.001, help="Show the recording so many times faster than it was.")
    ] = None,
    diff: Annotated[str, typer.Option(metavar="OTHER", help="Where this run and another one part.")] = "",
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Run a recorded campaign again, offline: no network, no SSH, no process.

    Exit code 0 when every request and decision is the recorded one, 7 at the first difference, which is
    shown; 6 for a damaged tape, 8 for a tape of another loop version.

    With --rethink each decision is made again on the state that was recorded before it. --step, --until and
    --speed show the recording to a person, --diff shows two of them beside each other. These take tapes of
    any version, go on past a difference and exit with 0.

    Example: moeagent replay last --step --until H2
    """
    shown = step or bool(until) or speed is not None
    if sum((rethink, bool(diff), shown)) > 1:
        raise InputError("--rethink, --diff, and --step with --until or --speed: one at a time")
    if signatures and not rethink:
        raise InputError("--signatures goes with --rethink: a strict replay uses what the run used")
    folder = find_run(runs, run)
    if rethink:
        _rethink(folder, signatures or [], as_json)
    elif diff:
        _diff(folder, find_run(runs, diff), as_json)
    elif shown:
        _show(folder, until, speed, step=step, as_json=as_json)
    else:
        _replay(folder, as_json)


def _replay(folder: RunFolder, as_json: bool) -> None:
    from rich.text import Text

    from moeagent.agent.campaign import replay
    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.text import console

    result = replay(folder)
    if as_json:
        print_json(result)
        return
    console().print(
        Text(
            f"{result['run']}: replayed {result['events']} events and {result['decisions']} decisions "
            f"without a difference; the run {result['ended']}"
        )
    )


def _rethink(folder: RunFolder, signatures: list[Path], as_json: bool) -> None:
    from moeagent.agent.rethink import rethink
    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.rethought import print_rethinking
    from moeagent.agent.show.text import console
    from moeagent.tools.diagnosis.catalogue import load_catalogue

    found = rethink(folder, load_catalogue(signatures) if signatures else None)
    if as_json:
        print_json({"counts": found.counts(), **found.model_dump(mode="json")})
    else:
        print_rethinking(found, console())


def _diff(folder: RunFolder, other: RunFolder, as_json: bool) -> None:
    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.text import console
    from moeagent.agent.show.two_runs import two_runs, two_runs_text

    found = two_runs(folder.read_tape(), other.read_tape())
    if as_json:
        print_json(found.to_json())
    else:
        console().print(two_runs_text(found))


def _show(folder: RunFolder, until: str, speed: float | None, *, step: bool, as_json: bool) -> None:
    import time

    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.moments import moments, up_to
    from moeagent.agent.show.stepping import play
    from moeagent.agent.show.text import console

    tape = folder.read_tape()
    every = moments(tape)
    shown = up_to(every, until) if until else every
    if not every and not as_json:
        console().print("nothing is recorded in this run yet")
    elif step:
        _step(folder, every, len(shown) - 1 if until else 0)
    elif as_json:
        print_json({"run": folder.id, "moments": [moment.to_json() for moment in shown]})
    else:
        play(shown, console(), speed, time.sleep)


def _step(folder: RunFolder, every: "tuple[Moment, ...]", at: int) -> None:
    from moeagent.agent.show.keys import keys
    from moeagent.agent.show.seen import Seen
    from moeagent.agent.show.stepping import Stepper
    from moeagent.agent.show.text import console

    screen = console()
    if not (screen.is_terminal and sys.stdin.isatty()):
        raise InputError("--step needs a terminal; --until N prints the recording, --speed X plays it")
    try:
        with keys() as key:
            Stepper(every, Seen(folder, folder.read_tape()), screen, key, at).run()
    except KeyboardInterrupt:
        typer.echo()
