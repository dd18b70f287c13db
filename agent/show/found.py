"""Findings of all runs as a table, as JSON and as CSV."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from moeagent.agent.show.plain import Text
from moeagent.agent.show.text import STYLES, change_text, percent
from moeagent.agent.show.visible import visible
from moeagent.memory.records import ConfigChange, VerdictKind

Row = dict[str, Any]
CELL_CHARS = 32_000
"""Just below what a cell of Excel and of LibreOffice holds (32,767)."""
FORMULA = ("=", "+", "@", "\t", "\r")
"""Beginnings of a cell that a spreadsheet runs."""


def with_change(rows: Sequence[Row]) -> list[Row]:
    """The rows with the change as an object, for JSON."""
    return [{**row, "change": json.loads(row["change"]), "simulated": bool(row["simulated"])} for row in rows]


def csv_text(rows: Sequence[Row]) -> str:
    """The rows as CSV with a head; a cell that a spreadsheet would run as a formula gets an apostrophe."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def findings_table(rows: Sequence[Row]) -> Table:
    """What was tried where, and how it ended."""
    table = Table(expand=True, show_lines=True)
    table.add_column("run, id", ratio=2, overflow="fold")
    table.add_column("where", ratio=3, overflow="fold")
    table.add_column("what", ratio=5, overflow="fold")
    table.add_column("verdict", ratio=4, overflow="fold")
    for row in rows:
        table.add_row(Text(f"{row['run']}\n{row['id']}"), Text(_where(row)), _what(row), _verdict(row))
    return table


def _where(row: Row) -> str:
    engine = f"{row['engine']} {row['engine_version'] or ''}".strip()
    simulated = "\nsimulated" if row["simulated"] else ""
    return f"{row['gpu_count']} x {row['gpu']}\n{engine}, {row['model']}{simulated}"


def _what(row: Row) -> Text:
    change = change_text(ConfigChange.model_validate_json(row["change"]))
    return Text.assemble(row["statement"][:400], "\n", (change, "cyan"))


def _verdict(row: Row) -> Text:
    if row["verdict"] is None:
        return Text("open", style="dim")
    kind = VerdictKind(row["verdict"])
    gain = f" {percent(row['gain'])} [{percent(row['low'])}, {percent(row['high'])}]" if row["gain"] else ""
    text = Text.assemble((kind.value, STYLES[kind]), gain, "\n", (row["verdict_reason"] or "")[:400])
    if row["review"]:
        text.append(f"\n{row['review']} by a reviewer {row['review_reason']}".rstrip(), style="yellow")
    return text


def _inert(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return visible(f"'{value}" if value.startswith(FORMULA) else value, limit=CELL_CHARS)
