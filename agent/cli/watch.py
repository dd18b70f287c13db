"""`moeagent watch`."""

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, JsonEvents, RunName, RunsRoot


def command(
    run: RunName,
    json_events: JsonEvents = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Follow a run until it ends: one screen on a terminal, plain lines otherwise.

    Ctrl-C ends the watching, not the run.

    Example: moeagent watch last
    """
    from moeagent.agent.show.follow import as_events, as_lines, follow, on_screen
    from moeagent.agent.show.text import console
    from moeagent.memory.run_folder import find_run

    folder, target = find_run(runs, run), console()
    try:
        if json_events:
            follow(folder, as_events(typer.echo))
        elif target.is_terminal and not target.is_dumb_terminal:
            on_screen(folder, target)
        else:
            follow(folder, as_lines(target))
    except KeyboardInterrupt:
        typer.echo(f"the run itself goes on: moeagent status {folder.id}", err=True)
