"""`moeagent reap`: what earlier runs left behind on a host."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunsRoot
from moeagent.memory.errors import HostError

if TYPE_CHECKING:
    from moeagent.agent.settings import HostSettings
    from moeagent.memory.lock import Holder
    from moeagent.tools.hosts.processes import Process, StopReport
    from moeagent.tools.hosts.protocol import Host
    from moeagent.tools.hosts.wrapped import Started, Wrapped, WrappedStop

GRACE_S = 20.0
"""A server may take this long to end by itself before it is killed."""


@dataclass
class Leftovers:
    """What carries a tag on a host: processes, and what wrappers started."""

    host: "Host"
    processes: "list[Process]"
    wrapped: "list[tuple[Started, tuple[Wrapped, ...]]]" = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """Wrappers that could not be asked."""
    busy: "dict[str, Holder]" = field(default_factory=dict)
    """By tag: of a run that somebody works on."""
    stopped: "list[StopReport | WrappedStop]" = field(default_factory=list)

    @property
    def any(self) -> bool:
        """Whether anything was found."""
        return bool(self.processes or self.wrapped)

    def lines(self) -> Iterator[str]:
        """Each of them for people."""
        for process in self.processes:
            yield f"{process.tag}  pid {process.pid}  {process.folder}{self._use(process.tag)}"
        for started, found in self.wrapped:
            ids = ", ".join(each.id for each in found)
            yield f"{started.tag}  {started.wrapper.kind} {ids}  {started.folder}{self._use(started.tag)}"

    def _use(self, tag: str) -> str:
        return f"  in use by {self.busy[tag]}" if tag in self.busy else ""

    def stop(self) -> None:
        """Stop all that nobody uses; what a wrapper started first, so that its client ends by itself."""
        from moeagent.tools.hosts.processes import reap
        from moeagent.tools.hosts.wrapped import stop_wrapped

        for started, _ in self.wrapped:
            if started.tag not in self.busy:
                report = stop_wrapped(self.host, started.wrapper, started.tag, grace_s=GRACE_S)
                self.stopped.append(report)
        left = [process for process in self.processes if process.tag not in self.busy]
        self.stopped += reap(self.host, left, grace_s=GRACE_S)


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
    """List and stop the servers that earlier runs left behind on a host, in containers and jobs too.

    Only what carries a run's tag is found, and of processes only your user's; what belongs to a run that is
    under way is left alone. Exit code 3 when something could not be stopped or seen.

    Example: moeagent reap --host user@gpu1 --yes
    """
    settings = _settings(host, config)
    place = _open(settings)
    try:
        found = _find(place, settings.folder, run, runs)
        if set(_tags(found)) - set(found.busy) and (yes or _agreed(found, as_json)):
            found.stop()
        _print(found, as_json)
    finally:
        place.close()
    if found.unseen or any(not report.gone for report in found.stopped):
        raise typer.Exit(3)


def _settings(target: str, config: Path | None) -> "HostSettings":
    from moeagent.agent.settings import SETTINGS_FILE, load_settings

    path = config or (Path(SETTINGS_FILE) if Path(SETTINGS_FILE).is_file() else None)
    host = load_settings(path, {"host": {"target": target or None}}).host
    return host if host.target else host.model_copy(update={"target": "local"})


def _open(settings: "HostSettings") -> "Host":
    from moeagent.agent.place import SIM, ssh_settings
    from moeagent.tools.hosts.factory import open_host
    from moeagent.tools.hosts.local import LocalHost

    if settings.target == SIM:
        return LocalHost(SIM, simulated=True)
    return open_host(settings.target, ssh=ssh_settings(settings))


def _find(host: "Host", folder: str, run: str, runs: Path) -> Leftovers:
    from moeagent.tools.hosts.processes import find_tagged
    from moeagent.tools.hosts.wrapped import find_started, find_wrapped

    prefix = f"{run}/" if run else ""
    found = Leftovers(host, find_tagged(host, prefix))
    for started in find_started(host, folder):
        if not started.tag.startswith(prefix):
            continue
        try:
            inside = find_wrapped(host, started.wrapper, started.tag)
        except HostError as error:
            found.unseen.append(str(error))
            continue
        if inside:
            found.wrapped.append((started, inside))
    found.busy = {tag: holder for tag in _tags(found) if (holder := _holder(runs, tag))}
    return found


def _tags(found: Leftovers) -> list[str]:
    return [*(each.tag for each in found.processes), *(started.tag for started, _ in found.wrapped)]


def _holder(runs: Path, tag: str) -> "Holder | None":
    """The living moeagent process that works on the tag's run."""
    from moeagent.memory.lock import look

    state = look(runs / tag.partition("/")[0])
    return state.holder if state.alive else None


def _agreed(found: Leftovers, as_json: bool) -> bool:
    import sys

    if as_json or not sys.stdin.isatty():
        return False
    for line in found.lines():
        typer.echo(line)
    return typer.confirm("Stop those that nobody uses?")


def _print(found: Leftovers, as_json: bool) -> None:
    import json

    if as_json:
        typer.echo(json.dumps(_as_json(found), ensure_ascii=False))
        return
    for line in found.lines():
        typer.echo(line)
    for line in _ends(found.stopped):
        typer.echo(line)
    for problem in found.unseen:
        typer.echo(problem, err=True)
    if not found.any and not found.unseen:
        typer.echo(f"{found.host.name}: nothing of moeagent's is running")
    elif not found.stopped and len(found.busy) < len(set(_tags(found))):
        typer.echo("stop them with --yes")


def _ends(reports: "Sequence[StopReport | WrappedStop]") -> Iterator[str]:
    for report in reports:
        told = " ".join(getattr(report, "signals", ())) or getattr(report, "kind", "")
        left = f"still there: {', '.join(map(str, report.remaining))}"
        yield f"{report.tag}  {told}  {'gone' if report.gone else left}"


def _as_json(found: Leftovers) -> dict[str, Any]:
    def use(tag: str) -> str | None:
        return str(found.busy[tag]) if tag in found.busy else None

    processes = [{**p.model_dump(mode="json"), "in_use_by": use(p.tag)} for p in found.processes]
    wrapped = [
        {
            "tag": started.tag,
            "folder": started.folder,
            "wrapper": started.wrapper.kind,
            "ids": [each.id for each in inside],
            "in_use_by": use(started.tag),
        }
        for started, inside in found.wrapped
    ]
    stopped = [report.model_dump(mode="json") | {"gone": report.gone} for report in found.stopped]
    return {
        "host": found.host.name,
        "found": processes,
        "wrapped": wrapped,
        "stopped": stopped,
        "unseen": found.unseen,
    }
