"""`moeagent serve`."""

from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunsRoot


def command(
    host: Annotated[
        str, typer.Option(help="Address to listen on; outside loopback a token is always asked for.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8390,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token on loopback too: other users share this machine.")
    ] = False,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """A local, read-only web page: the runs, a live run, reports, hypothesis logs, findings.

    The page of a run under way updates itself. Nothing is loaded from another host. Ctrl-C ends it; the runs
    are not touched.

    Example: moeagent serve --port 8390
    """
    from moeagent.agent.serve.guard import is_loopback
    from moeagent.agent.serve.server import address_of, listen, serve
    from moeagent.agent.show.as_json import print_json

    listening, door = listen(host, port, with_token=token)
    if as_json:
        print_json({"address": address_of(door), "port": door.port, "token": door.token})
    else:
        typer.echo(f"{address_of(door)} shows {runs}; Ctrl-C ends it")
        if not is_loopback(host):
            typer.echo("what it sends is not encrypted: loopback and `ssh -L` are safer", err=True)
    try:
        serve(runs, listening, door)
    except KeyboardInterrupt:
        typer.echo("the page is closed; runs go on", err=True)
