"""`moeagent init`."""

from pathlib import Path
from typing import Annotated

import typer

from moeagent.agent.cli.options import AsJson


def command(
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("moeagent.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented moeagent.toml with every setting and its default.

    Example: moeagent init && $EDITOR moeagent.toml
    """
    from moeagent.agent.settings_file import commented_settings
    from moeagent.agent.show.as_json import print_json
    from moeagent.memory.errors import InputError
    from moeagent.memory.run_folder import write_private

    if path.exists() and not force:
        raise InputError(f"{path} exists already: choose another name, or --force writes over it")
    write_private(path, commented_settings().encode())
    if as_json:
        print_json({"written": str(path)})
    else:
        typer.echo(f"wrote {path}; next: moeagent doctor, then moeagent run")
