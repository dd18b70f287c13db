"""`moeagent export`."""

from pathlib import Path
from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot


def command(
    run: RunName,
    form: Annotated[
        str, typer.Option("--format", help="sh, systemd, compose, k8s or json.", metavar="FORMAT")
    ] = "sh",
    experiment: Annotated[
        str, typer.Option(help="Not the best but this one: H3, L12 or `baseline`.", metavar="ID")
    ] = "",
    image: Annotated[str, typer.Option(help="Container image for compose and k8s.")] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """The best configuration as a server start: the command and variables that were measured, unchanged.

    Where no change is proven better, the baseline is exported, and it says so. Secrets are never written:
    each becomes a variable to set.

    Example: moeagent export last --format systemd -o /etc/systemd/system/llm.service
    """
    from moeagent.agent.export.choice import chosen
    from moeagent.agent.export.formats import FORMATS
    from moeagent.agent.export.make import make_export
    from moeagent.memory.errors import InputError
    from moeagent.memory.run_folder import find_run
    from moeagent.memory.run_view import RunView

    form = "json" if as_json else form
    if form not in FORMATS:
        raise InputError(f"--format {form}: choose one of {', '.join(FORMATS)}")
    view = RunView.read(find_run(runs, run))
    choice = chosen(view, experiment)
    export = make_export(view, choice, image or None)
    text = FORMATS[form](export)
    if output is None:
        typer.echo(text, nl=False)
    else:
        _write(output, text, executable=form == "sh")
    for told in (choice.warning, *_to_set(export.start.secrets)):
        if told:
            typer.echo(f"note: {told}", err=True)


def _to_set(secrets: tuple[str, ...]) -> list[str]:
    return [f"a secret is not exported: set the variable {name}" for name in secrets]


def _write(path: Path, text: str, *, executable: bool) -> None:
    from moeagent.agent.show.files import write_report

    write_report(path, text)
    if executable:
        path.chmod(0o700)
    typer.echo(f"wrote {path}")
