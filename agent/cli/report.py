"""`moeagent report`."""

from pathlib import Path
from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot


def command(
    run: RunName,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """The findings report of a run, in Markdown: the answer first, then the evidence.

    Example: moeagent report last -o findings.md
    """
    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.report import markdown
    from moeagent.memory.run_folder import find_run, write_private
    from moeagent.memory.run_view import RunView

    view = RunView.read(find_run(runs, run))
    text = markdown(view)
    if as_json:
        print_json({"run": view.run, "simulated": view.simulated, "markdown": text})
    elif output:
        write_private(output, text.encode())
    else:
        typer.echo(text, nl=False)
