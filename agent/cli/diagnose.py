"""`moeagent diagnose`: a log in, the cause out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from moeagent.memory.errors import InputError
from moeagent.memory.records.diagnosis import Diagnosis, Stage

if TYPE_CHECKING:
    from moeagent.agent.show.plain import Text
    from moeagent.memory.records.diagnosis import Remedy
    from moeagent.tools.diagnosis.catalogue import Catalogue, Signature
    from moeagent.tools.diagnosis.log import Log

CONTEXT = 3
"""Lines shown on either side of the causing line."""
WIDEST = 300
"""Characters of a line that a terminal gets; --json holds the whole line."""


def command(
    file: Annotated[str, typer.Argument(help="Log file, or - for standard input.")] = "-",
    host: Annotated[str | None, typer.Option(help="Host that holds the file: user@host, or local.")] = None,
    engine: Annotated[
        str | None, typer.Option(help="sglang, vllm or llamacpp; told from the log if omitted.")
    ] = None,
    stage: Annotated[
        str | None, typer.Option(help="Stage the server died in, where the log does not tell.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    explain: Annotated[
        str | None, typer.Option(help="Show one signature and exit.", metavar="SIGNATURE")
    ] = None,
    signatures: Annotated[list[Path] | None, typer.Option(help="TOML file of your own signatures.")] = None,
    ssh_config: Annotated[str, typer.Option(help="SSH configuration file.")] = "",
    accept_new: Annotated[bool, typer.Option("--accept-new", help="Accept an unknown SSH host key.")] = False,
) -> None:
    """Name the cause in a server's log: class, causing line, what to change next.

    Exit status 0 when an answer was given (a healthy log is one), 2 when the input cannot be read, 3 when the
    host cannot. With --host the log is searched there; only selected lines travel.

    Example: moeagent diagnose server.log --json
    """
    from moeagent.tools.diagnosis import load_catalogue

    catalogue = load_catalogue(signatures or ())
    if explain is not None:
        _show_signature(catalogue.signature(explain), as_json)
        return
    from moeagent.tools.diagnosis import diagnose_log

    known = _stage(stage)
    log = _read_on_host(file, host, ssh_config, accept_new, catalogue) if host else _read(file, catalogue)
    answer = diagnose_log(log, engine=engine, stage=known, catalogue=catalogue)
    if as_json:
        typer.echo(
            answer.model_dump_json(by_alias=True, exclude={"by": True, "remedies": {"__all__": {"value"}}})
        )
    else:
        _show(answer, log)


def _stage(name: str | None) -> Stage | None:
    if name is None:
        return None
    for stage in get_args(Stage):
        if stage == name:
            known: Stage = stage
            return known
    raise InputError(f"--stage {name!r} is unknown; use one of {', '.join(get_args(Stage))}")


def _read(file: str, catalogue: "Catalogue") -> "Log":
    from moeagent.tools.diagnosis.reading import read_log, read_stream

    if file != "-":
        return read_log(Path(file), catalogue)
    import sys

    if sys.stdin.isatty():
        raise InputError("no log was given; name a file, or pipe one in: moeagent diagnose - < server.log")
    return read_stream(sys.stdin.buffer, "standard input", catalogue)


def _read_on_host(file: str, host: str, ssh_config: str, accept_new: bool, catalogue: "Catalogue") -> "Log":
    if file == "-":
        raise InputError("--host needs the path of the log on that host")
    from moeagent.agent.place import ssh_settings
    from moeagent.agent.settings import HostSettings
    from moeagent.tools.diagnosis.remote import read_on_host
    from moeagent.tools.hosts.factory import open_host

    ssh = ssh_settings(HostSettings(target=host, ssh_config=ssh_config or None, accept_new=accept_new))
    machine = open_host(host, ssh=ssh)
    try:
        return read_on_host(machine, file, catalogue)
    finally:
        machine.close()


def _show(answer: Diagnosis, log: "Log") -> None:
    from rich.console import Console, Group
    from rich.panel import Panel

    from moeagent.agent.show.plain import Text

    parts = [Text(answer.explanation), Text(), *_context(answer, log)]
    if answer.remedies and not answer.healthy:
        parts += [Text(), Text("Change next:", style="bold")]
        parts += [
            Text(f"  {n}. {r.target} ({r.direction}): {r.change}\n     {r.why}") for n, r in _numbered(answer)
        ]
    if answer.symptoms:
        parts += [Text(), Text("Set aside:", style="bold")]
        parts += [
            Text(f"  line {s.line_no}: {s.line[:80]}\n     {s.reason}", style="dim")
            for s in answer.symptoms[:6]
        ]
    if answer.alternatives:
        others = ", ".join(f"{one.failure_class} {one.confidence:.0%}" for one in answer.alternatives)
        parts += [Text(), Text(f"Otherwise: {others}", style="dim")]
    colour = "green" if answer.healthy else "red"
    ranks = f", ranks {', '.join(answer.ranks)}" if answer.ranks else ""
    title = Text(f"{answer.failure_class} ({answer.confidence:.0%}, stage {answer.stage}{ranks})")
    Console(markup=False, highlight=False).print(Panel(Group(*parts), title=title, border_style=colour))


def _numbered(answer: Diagnosis) -> list[tuple[int, "Remedy"]]:
    return list(enumerate(answer.remedies[:5], 1))


def _context(answer: Diagnosis, log: "Log") -> list["Text"]:
    from moeagent.agent.show.plain import Text

    if answer.line_no is None:
        return []
    rows = []
    for line in log.around(answer.line_no, CONTEXT, CONTEXT):
        cause = line.no == answer.line_no
        mark = ">" if cause else " "
        rows.append(Text(f"{mark}{line.no:>8} {line.text[:WIDEST]}", style="bold" if cause else "dim"))
    return rows


def _show_signature(signature: "Signature", as_json: bool) -> None:
    if as_json:
        typer.echo(signature.model_dump_json(by_alias=True, exclude_defaults=True))
        return
    import tomli_w

    data = signature.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    typer.echo(tomli_w.dumps({"signature": [data]}, multiline_strings=False).rstrip())
