"""`moeagent review`."""

from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot


def command(
    run: RunName,
    about: Annotated[str, typer.Argument(metavar="ID", help="A hypothesis (H3) or a launch (L5).")],
    confirm: Annotated[bool, typer.Option("--confirm", help="The finding is right.")] = False,
    reject: Annotated[str, typer.Option(metavar="REASON", help="The finding is wrong, and why.")] = "",
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Confirm or reject a finding; later runs do not use what was rejected. The last word counts.

    Rejecting a launch rejects its diagnosis, and with it a hypothesis that is blocked by it.

    Example: moeagent review last H3 --reject "another job ran on GPU 2"
    """
    from moeagent.agent.reviewing import write_review
    from moeagent.agent.show.as_json import print_json
    from moeagent.memory.errors import InputError
    from moeagent.memory.run_folder import find_run

    if confirm == bool(reject):
        raise InputError("say either --confirm or --reject REASON")
    folder = find_run(runs, run)
    judgement = write_review(folder, runs, about, reject, "confirmed" if confirm else "rejected")
    if as_json:
        print_json(judgement.model_dump(mode="json"))
    else:
        unused = "" if confirm else ": later runs will not use it"
        typer.echo(f"{about} of run {folder.id} is {judgement.judgement}{unused}")
