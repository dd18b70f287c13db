"""`moeagent runs`."""

from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunsRoot


def command(
    tree: Annotated[
        bool, typer.Option("--tree", help="Each fork below the run that it goes on from.")
    ] = False,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """List the runs, newest first; a run whose tape cannot be read says why.

    Example: moeagent runs --tree
    """
    from rich.table import Table

    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.family import family
    from moeagent.agent.show.plain import Text
    from moeagent.agent.show.runs import summaries
    from moeagent.agent.show.text import console

    rows = summaries(runs)
    if as_json:
        print_json({"runs": rows})
        return
    if not rows:
        console().print(Text(f"there are no runs in {runs} yet: moeagent run --goal max-throughput"))
        return
    if tree:
        console().print(family(rows))
        return
    table = Table("run", "status", "goal", "engine", "model", "hypotheses", "best")
    for row in rows:
        mark = " (simulated)" if row["simulated"] else ""
        cells = (row["run"], row["status"], row["goal"], row["engine"] + mark, row["model"])
        table.add_row(*map(Text, cells), Text(str(row["hypotheses"])), Text(row["best"]))
    console().print(table)
