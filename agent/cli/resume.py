"""`moeagent resume`."""

from typing import Annotated

import typer

from moeagent.agent.cli.options import (
    DEFAULT_RUNS,
    ApproveMode,
    AsJson,
    JsonEvents,
    PauseAfter,
    PolicyFile,
    RunName,
    RunsRoot,
)


def command(
    run: RunName,
    limit: Annotated[list[str] | None, typer.Option(help="Raise a limit, such as experiments=20.")] = None,
    approve_next: Annotated[
        bool, typer.Option("--approve-next", help="Launch what waits for approval.")
    ] = False,
    decline_next: Annotated[
        bool, typer.Option("--decline-next", help="Do not launch it, and do not propose it again.")
    ] = False,
    skip_next: Annotated[
        bool, typer.Option("--skip-next", help="Do not launch it now; it is listed as left to try.")
    ] = False,
    approve: ApproveMode = "",
    policy: PolicyFile = None,
    pause_after: PauseAfter = None,
    as_json: AsJson = False,
    json_events: JsonEvents = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Go on after a crash, an interruption or with a raised limit; nothing measured is measured again.

    A run that waits for approval asks again; without a terminal say --approve-next, --decline-next or
    --skip-next. --approve and --policy hold from here on.

    Example: moeagent resume last --limit experiments=20
    """
    from moeagent.agent.campaign import resume
    from moeagent.agent.cli import parse
    from moeagent.agent.cli.ask import answer_once, ask_engineer
    from moeagent.agent.show.session import watched
    from moeagent.memory.lock import check_free
    from moeagent.memory.run_folder import find_run

    folder = find_run(runs, run)
    check_free(folder.path)
    amend = {**parse.limits(limit or []), **parse.approval(approve, policy)}
    said = parse.answer(approve_next=approve_next, decline_next=decline_next, skip_next=skip_next)
    part, output = parse.pause_after(pause_after or []), parse.output(as_json, json_events)
    with watched(folder, runs, output=output) as watch:
        approver = answer_once(said) if said else ask_engineer
        resume(folder, runs, amend, watch, approver, pause_after=part)
