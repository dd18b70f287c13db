"""`moeagent findings`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunsRoot
from moeagent.memory.errors import InputError


class Export(StrEnum):
    """Formats for other programs."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def command(
    query: Annotated[list[str] | None, typer.Argument(metavar="[QUERY]", help="Words to look for.")] = None,
    gpu: Annotated[str, typer.Option(help="Only on GPUs whose name holds this.")] = "",
    engine: Annotated[str, typer.Option(help="Only with this engine.")] = "",
    model: Annotated[str, typer.Option(help="Only with models whose name holds this.")] = "",
    verdict: Annotated[str, typer.Option(help="Only with this verdict.")] = "",
    flag: Annotated[str, typer.Option(help="Only what touches this flag or variable.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Rows at most.")] = 50,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the index again from the tapes.")] = False,
    export: Annotated[Export | None, typer.Option(help="All columns in this format.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="With --export: write to this file.")
    ] = None,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """What all runs learnt: full-text search, with filters over scope, verdict and flag.

    The store is runs/findings.db, plain SQLite; docs/schema.md says what is in it. It is only an index:
    --rebuild makes it again from the tapes. Parquet needs `pip install 'moeagent[parquet]'` and --output.

    Example: moeagent findings expert parallelism --gpu "RTX PRO 6000" --verdict blocked
    """
    from moeagent.agent.findings_index import STORE
    from moeagent.agent.show.as_json import json_text, print_json
    from moeagent.agent.show.exported import exported, write_export
    from moeagent.agent.show.filters import verdict_named
    from moeagent.agent.show.found import with_change
    from moeagent.memory.findings.query import Filters, find
    from moeagent.memory.findings.rebuild import rebuild as rebuild_store
    from moeagent.memory.findings.store import FindingsStore

    if output and not export:
        raise InputError("--output goes with --export: json, csv or parquet")
    rebuilt = rebuild_store(runs, runs / STORE) if rebuild else None
    for run, reason in (rebuilt.skipped if rebuilt else {}).items():
        typer.echo(f"moeagent: left out {run}: {reason}", err=True)
    filters = Filters(
        text=" ".join(query or []),
        gpu=gpu,
        engine=engine,
        model=model,
        verdict=verdict_named(verdict),
        flag=flag,
        limit=limit,
    )
    store = FindingsStore(runs / STORE)
    rows = find(store, filters)
    store.close()
    told = {
        "findings": with_change(rows),
        "rebuilt": rebuilt.model_dump(mode="json") if rebuilt else None,
    }
    if output and export:
        data = json_text(told).encode() + b"\n" if export is Export.JSON else exported(rows, export)
        write_export(output, data)
        typer.echo(f"{len(rows)} findings written to {output}")
    elif as_json or export is Export.JSON:
        print_json(told)
    elif export is Export.CSV:
        typer.echo(exported(rows, export).decode(), nl=False)
    elif export is Export.PARQUET:
        raise InputError("--export parquet is binary: name a file with --output findings.parquet")
    else:
        _print(rows, rebuilt.indexed if rebuilt else ())


def _print(rows: list[dict[str, object]], indexed: tuple[str, ...]) -> None:
    from moeagent.agent.show.found import findings_table
    from moeagent.agent.show.plain import Text
    from moeagent.agent.show.text import console

    target = console()
    if indexed:
        target.print(Text(f"indexed {len(indexed)} runs"))
    if rows:
        target.print(findings_table(rows))
    else:
        target.print(Text("nothing is known of that; `moeagent findings` without words shows everything"))
