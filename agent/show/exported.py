"""Findings as files for other programs."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moeagent.agent.show.found import csv_text
from moeagent.memory.errors import InputError
from moeagent.memory.findings.query import NAMES
from moeagent.memory.run_folder import write_private

TYPES = {
    "gpu_count": "int64",
    "simulated": "bool",
    "effect": "double",
    "low": "double",
    "high": "double",
    "gain": "double",
}
"""Parquet's types of the columns that are no text; all of them may be null."""


def exported(rows: Sequence[dict[str, Any]], form: str) -> bytes:
    """The rows as CSV, or as Parquet. Raises InputError where the library for that is not installed."""
    return _parquet(rows) if form == "parquet" else csv_text(rows).encode()


def write_export(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all. Raises InputError where it cannot be written."""
    try:
        write_private(path, data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}. Choose another file") from None


def _parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow, which is not installed: pip install 'moeagent[parquet]', or export csv"
        ) from None
    columns = {
        name: arrow.array(
            [_plain(name, row[name]) for row in rows], arrow.type_for_alias(TYPES.get(name, "string"))
        )
        for name in NAMES
    }
    out = io.BytesIO()
    parquet.write_table(arrow.table(columns), out)
    return out.getvalue()


def _plain(name: str, value: Any) -> Any:
    return bool(value) if name == "simulated" else value
