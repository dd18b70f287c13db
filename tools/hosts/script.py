"""The small POSIX sh programs that do the host's side of the work; they travel with each call."""

from collections.abc import Mapping
from importlib.resources import files

from moeagent.memory.errors import HostError
from moeagent.tools.hosts.command import Command, Part
from moeagent.tools.hosts.protocol import CommandResult, Host

SHORT_S = 30.0
"""For calls that only look something up."""


def script(
    name: str,
    *arguments: Part,
    env: Mapping[str, Part] | None = None,
    cwd: str | None = None,
) -> Command:
    """The command that runs `name`.sh of this package with these arguments.

    Every script is written so that a second run of the same call does no harm.
    """
    text = files("moeagent.tools.hosts").joinpath(f"{name}.sh").read_text("utf-8")
    title = " ".join([name, *(str(argument) for argument in arguments[:2])])
    argv = ("sh", "-c", text, "moeagent", *arguments)
    return Command(argv, env=env or {}, cwd=cwd, repeatable=True, title=title)


def ask(host: Host, command: Command, doing: str, *, timeout_s: float = SHORT_S) -> CommandResult:
    """Run a command that should succeed. Raises HostError with what was being done and what the host said."""
    result = host.run(command, timeout_s=timeout_s)
    if not result.ok:
        raise HostError(f"{host.name}: {doing} failed: {said(result)}")
    return result


def said(result: CommandResult) -> str:
    """The end of what a failed command printed, for a message."""
    text = (result.stderr or result.stdout).decode("utf-8", "replace").strip()
    return text[-400:] or f"exit code {result.exit_code}, no message"
