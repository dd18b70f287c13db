"""`moeagent replay`."""

from pathlib import Path
from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot
from moeagent.memory.errors import InputError
from moeagent.memory.run_folder import RunFolder, find_run


def command(
    run: RunName,
    rethink: Annotated[
        bool,
        typer.Option("--rethink", help="Make every recorded decision again; report those that now differ."),
    ] = False,
    signatures: Annotated[
        list[Path] | None, typer.Option(help="With --rethink: TOML file of your own failure signatures.")
    ] = None,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Run a recorded campaign again, offline: no network, no SSH, no process.

    Exit code 0 when every request and decision is the recorded one, 7 at the first difference, which is
    shown; 6 for a damaged tape, 8 for a tape of another loop version.

    With --rethink each decision is made again on the state that was recorded before it. This takes tapes of
    any version, goes on past a difference and exits with 0.

    Example: moeagent replay last --rethink
    """
    if signatures and not rethink:
        raise InputError("--signatures goes with --rethink: a strict replay uses what the run used")
    folder = find_run(runs, run)
    if rethink:
        _rethink(folder, signatures or [], as_json)
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
