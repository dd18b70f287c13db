"""`moeagent fork`."""

from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot


def command(
    run: RunName,
    at: Annotated[int, typer.Option("--at", help="Tape line up to which the new run is the old one.")],
    limit: Annotated[list[str] | None, typer.Option(help="Another limit, such as experiments=20.")] = None,
    goal: Annotated[str, typer.Option(help="Another goal from there on.")] = "",
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Start a new run from a step of an old one: the same up to a tape line, recorded anew from there.

    Example: moeagent fork last --at 120 --limit experiments=20
    """
    from moeagent.agent.campaign import fork, resume
    from moeagent.agent.cli.ask import ask_engineer
    from moeagent.agent.cli.parse import limits
    from moeagent.agent.show.session import watched
    from moeagent.memory.run_folder import find_run

    amend = limits(limit or [])
    if goal:
        amend["goal"] = {"name": goal}
    folder = fork(find_run(runs, run), runs, at)
    with watched(folder, runs, as_json=as_json) as watch:
        resume(folder, runs, amend, watch, ask_engineer)
