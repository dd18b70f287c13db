"""`moeagent note`."""

from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot


def command(
    run: RunName,
    about: Annotated[str, typer.Argument(metavar="ID", help="H3, L5, baseline or run.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What you want to remember.")],
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Write a note on a run, a hypothesis or a launch into review.jsonl beside the tape.

    Example: moeagent note last H3 "try again after the driver update"
    """
    from moeagent.agent.reviewing import write_review
    from moeagent.agent.show.as_json import print_json
    from moeagent.memory.run_folder import find_run

    folder = find_run(runs, run)
    review = write_review(folder, runs, about, text)
    if as_json:
        print_json(review.model_dump(mode="json"))
    else:
        typer.echo(f"noted on {about} of run {folder.id}")
