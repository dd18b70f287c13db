"""The command line: which commands there are. Each is imported only when it is called."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "run": "Optimise an inference server: propose, launch, measure, judge, until the budget ends.",
    "plan": "Print every command that a run would run, with cost, risk and approval; launch nothing.",
    "init": "Write a commented moeagent.toml.",
    "log": "The hypothesis log of a run: what, why, predicted, measured, verdict.",
    "report": "The findings report of a run, in Markdown or as one HTML file.",
    "export": "The best configuration as a script, systemd unit, compose file or Kubernetes deployment.",
    "replay": "Run a recorded campaign again, offline, and stop at the first difference.",
    "resume": "Go on after a crash, an interruption or with a raised limit.",
    "fork": "Start a new run from a step of an old one, with changed settings.",
    "runs": "List the runs.",
    "diagnose": "Name the cause of a failure from a server's log.",
    "bench": "Load a server at rising concurrency and measure it.",
    "predict": "Memory and speed of a configuration, before any launch.",
    "prompt": "What the language model saw at a step of a run.",
    "worlds": "Compare policies on simulated worlds, launch for launch.",
    "doctor": "What works on a host or in a run's folder, what is missing, what to do.",
    "reap": "List and stop servers that earlier runs left behind on a host.",
    "findings": "What all runs learnt: full-text search, filters, export.",
    "status": "How a run stands now, from any terminal.",
    "watch": "Follow a run until it ends.",
    "serve": "A local, read-only web page: runs, a live run, reports, logs, findings.",
    "compare": "Runs side by side, where they can be compared.",
    "note": "Write a note on a run, a hypothesis or a launch.",
    "review": "Confirm or reject a finding; later runs do not use what was rejected.",
}
HELP = """Autonomous optimisation loop for LLM inference servers.

Exit codes: 0 done; 2 bad input; 3 host; 4 engine; 5 language model endpoint; 6 damaged tape;
7 replay differs; 8 tape of another loop version; 9 awaiting approval; 130 stopped by a signal.

Example: moeagent run --goal max-throughput --host user@gpu1 --engine sglang --model /models/GLM-5-NVFP4
"""


class LazyGroup(TyperGroup):
    """Lists every command from the table above; imports one when it is called."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of a user's work."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, or only its line of help while the list is printed."""
        if cmd_name not in COMMANDS:
            return None
        if self._listing:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name], callback=lambda: None)
        module = import_module(f"moeagent.agent.cli.{cmd_name}")
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(name=cmd_name)(module.command)
        return typer.main.get_command(single)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As usual, with the nearest name for one that does not exist."""
        from difflib import get_close_matches

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"there is no command {args[0]!r}.{hint} `moeagent --help` lists them")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list, without importing what it lists."""
        self._listing = True
        super().format_help(ctx, formatter)


app = typer.Typer(
    cls=LazyGroup,
    help=HELP,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"moeagent {version('moeagent')}")
        raise typer.Exit


@app.callback(help=HELP)
def main(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Options of the program itself."""
