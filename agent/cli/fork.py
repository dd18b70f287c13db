"""`moeagent fork`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, JsonEvents, RunName, RunsRoot


def command(
    run: RunName,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="N|ID",
            help="Tape line up to which the new run is the old one, or the idea to replace.",
        ),
    ],
    goal: Annotated[str, typer.Option(help="Another goal from there on.")] = "",
    limit: Annotated[list[str] | None, typer.Option(help="Another limit, such as experiments=20.")] = None,
    llm: Annotated[str, typer.Option(help="Another OpenAI-compatible endpoint that proposes.")] = "",
    llm_model: Annotated[str, typer.Option(help="Name of the model at that endpoint.")] = "",
    prompt: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FILE", help="A prompt of your own, such as turn=my.md.")
    ] = None,
    own: Annotated[
        Path | None, typer.Option("--try", help="TOML file of your own [\\[idea]]s, tried next.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Another setting, such as goal.min_effect=0.05."),
    ] = None,
    run_id: Annotated[str, typer.Option(help="Name of the new run's folder.")] = "",
    as_json: AsJson = False,
    json_events: JsonEvents = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Start a new run from a step of an old one: the same up to a tape line, recorded anew from there.

    With an id in place of a line, the new run goes on where that hypothesis was thought of. What was measured
    until then is not measured again. `moeagent runs --tree` shows which run came from which.

    Example: moeagent fork last --at H3 --try my-idea.toml --limit experiments=20
    """
    from moeagent.agent.campaign import fork, resume
    from moeagent.agent.cli import parse
    from moeagent.agent.cli.ask import ask_engineer
    from moeagent.agent.forking import check_changes, line_of, own_prompts
    from moeagent.agent.settings import read_settings_file
    from moeagent.agent.show.session import watched
    from moeagent.memory.run_folder import find_run

    output = parse.output(as_json, json_events)
    changes = parse.settings(change or [])
    given: dict[str, Any] = {
        "goal": {"name": goal} if goal else {},
        "limits": parse.limits(limit or []).get("limits", {}),
        "llm": {**({"base_url": llm} if llm else {}), **({"model": llm_model} if llm_model else {})},
        "prompt": own_prompts(prompt or []),
        "idea": list(read_settings_file(own).get("idea", ())) if own else [],
    }
    for name, values in given.items():
        if values:
            changes[name] = {**changes.get(name, {}), **values} if isinstance(values, dict) else values
    source = find_run(runs, run)
    tape = source.read_tape()
    line = line_of(tape, at)
    check_changes(tape, line, changes)
    folder = fork(source, runs, line, run_id or None)
    with watched(folder, runs, output=output) as watch:
        resume(folder, runs, changes, watch, ask_engineer)
