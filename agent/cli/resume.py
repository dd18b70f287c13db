"""`moeagent resume`."""

from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, PauseAfter, RunName, RunsRoot


def command(
    run: RunName,
    limit: Annotated[list[str] | None, typer.Option(help="Raise a limit, such as experiments=20.")] = None,
    pause_after: PauseAfter = None,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Go on after a crash, an interruption or with a raised limit; nothing measured is measured again.

    Example: moeagent resume last --limit experiments=20
    """
    from moeagent.agent.campaign import resume
    from moeagent.agent.cli import parse
    from moeagent.agent.show.session import watched
    from moeagent.memory.lock import check_free
    from moeagent.memory.run_folder import find_run

    folder = find_run(runs, run)
    check_free(folder.path)
    amend, part = parse.limits(limit or []), parse.pause_after(pause_after or [])
    with watched(folder, runs, as_json=as_json) as watch:
        resume(folder, runs, amend, watch, pause_after=part)
