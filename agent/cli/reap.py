"""`moeagent reap`: what earlier runs left behind on a host."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunsRoot

if TYPE_CHECKING:
    from moeagent.memory.lock import Holder
    from moeagent.tools.hosts.processes import Process, StopReport
    from moeagent.tools.hosts.protocol import Host

GRACE_S = 20.0
"""A server may take this long to end by itself before it is killed."""


def command(
    host: Annotated[
        str, typer.Option(help="local, sim, user@host or an SSH alias; else moeagent.toml's.")
    ] = "",
    run: Annotated[str, typer.Option(help="Only this run's; its whole id.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Stop them without asking.")] = False,
    config: Annotated[Path | None, typer.Option(help="Settings file; moeagent.toml if it is here.")] = None,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """List and stop the servers that earlier runs left behind on a host.

    Only processes of your user that carry a run's tag are found; those of a run that is under way are left
    alone. Exit code 3 when something could not be stopped.

    Example: moeagent reap --host user@gpu1 --yes
    """
    place = _open(host, config)
    try:
        from moeagent.tools.hosts.processes import find_tagged, reap

        found = find_tagged(place, f"{run}/" if run else "")
        busy = {process.tag: holder for process in found if (holder := _holder(runs, process.tag))}
        left = [process for process in found if process.tag not in busy]
        stopped = reap(place, left, grace_s=GRACE_S) if left and (yes or _agreed(left, as_json)) else []
        _print(place, found, busy, stopped, as_json)
    finally:
        place.close()
    if any(not report.gone for report in stopped):
        raise typer.Exit(3)


def _open(target: str, config: Path | None) -> "Host":
    from moeagent.agent.place import SIM, ssh_settings
    from moeagent.agent.settings import SETTINGS_FILE, load_settings
    from moeagent.tools.hosts.factory import open_host
    from moeagent.tools.hosts.local import LocalHost

    path = config or (Path(SETTINGS_FILE) if Path(SETTINGS_FILE).is_file() else None)
    settings = load_settings(path, {"host": {"target": target or None}})
    name = settings.host.target or "local"
    return LocalHost(SIM, simulated=True) if name == SIM else open_host(name, ssh=ssh_settings(settings.host))


def _holder(runs: Path, tag: str) -> "Holder | None":
    """The living moeagent process that works on the tag's run."""
    from moeagent.memory.lock import look

    state = look(runs / tag.partition("/")[0])
    return state.holder if state.alive else None


def _agreed(left: "Sequence[Process]", as_json: bool) -> bool:
    import sys

    if as_json or not sys.stdin.isatty():
        return False
    for process in left:
        typer.echo(_line(process))
    return typer.confirm(f"Stop {len(left)} of them?")


def _line(process: "Process") -> str:
    return f"{process.tag}  pid {process.pid}  {process.folder}"


def _print(
    host: "Host",
    found: "Sequence[Process]",
    busy: "dict[str, Holder]",
    stopped: "Sequence[StopReport]",
    as_json: bool,
) -> None:
    import json

    if as_json:
        rows = [
            {
                **process.model_dump(mode="json"),
                "in_use_by": str(busy[process.tag]) if process.tag in busy else None,
            }
            for process in found
        ]
        reports = [report.model_dump(mode="json") for report in stopped]
        typer.echo(json.dumps({"host": host.name, "found": rows, "stopped": reports}, ensure_ascii=False))
        return
    for process in found:
        use = f"  in use by {busy[process.tag]}" if process.tag in busy else ""
        typer.echo(_line(process) + use)
    for report in stopped:
        end = "gone" if report.gone else f"still there: pids {', '.join(map(str, report.remaining))}"
        typer.echo(f"{report.tag}  {' '.join(report.signals)}  {end}")
    if not found:
        typer.echo(f"{host.name}: nothing of moeagent's is running")
    elif not stopped and len(busy) < len(found):
        typer.echo("stop them with --yes")
