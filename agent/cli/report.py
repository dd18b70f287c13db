"""`moeagent report`."""

from pathlib import Path
from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot


def command(
    run: RunName,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one self-contained HTML file with pictures here.")
    ] = None,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """The findings report of a run, in Markdown or as one HTML file: the answer first, then the evidence.

    The HTML file loads nothing from anywhere and runs no script; it can be mailed and printed.

    Example: moeagent report last --html findings.html
    """
    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.files import write_report
    from moeagent.agent.show.report import markdown
    from moeagent.agent.show.seen import ideas_left
    from moeagent.memory.review import read_reviews
    from moeagent.memory.run_folder import find_run
    from moeagent.memory.run_view import RunView

    folder = find_run(runs, run)
    view, ideas = RunView.read(folder), ideas_left(folder)
    text = markdown(view, read_reviews(folder), ideas)
    if output:
        write_report(output, text)
    if html:
        from moeagent.agent.show.html.page import page

        write_report(html, page(folder, view, ideas))
    if as_json:
        print_json({"run": view.run, "simulated": view.simulated, "markdown": text})
    elif not (output or html):
        typer.echo(text, nl=False)
