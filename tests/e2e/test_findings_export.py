"""findings --export into files that other programs read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.command import environment, moeagent
from parts.hostile import write_hostile_run
from parts.made_run import write_run

WITHOUT = """
import sys
sys.modules["pyarrow"] = None
sys.argv = ["moeagent", "findings", "--export", "parquet", "--output", "x.parquet"]
from moeagent.agent.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("exported")
    write_run(made / "runs", "one")
    write_hostile_run(made / "runs")
    moeagent(made, "findings", "--rebuild")
    return made


def test_parquet_holds_what_json_holds(folder: Path) -> None:
    from pyarrow import parquet

    moeagent(folder, "findings", "--export", "parquet", "-o", "findings.parquet")
    moeagent(folder, "findings", "--export", "json", "-o", "findings.json")
    rows = parquet.read_table(folder / "findings.parquet").to_pylist()
    told = json.loads((folder / "findings.json").read_text())["findings"]
    assert [{**row, "change": json.loads(row["change"])} for row in rows] == told
    assert isinstance(rows[0]["simulated"], bool)


def test_nothing_found_is_a_table_with_columns(folder: Path) -> None:
    from pyarrow import parquet

    moeagent(folder, "findings", "nosuchword", "--export", "parquet", "-o", "none.parquet")
    table = parquet.read_table(folder / "none.parquet")
    assert table.num_rows == 0
    assert "verdict_reason" in table.column_names


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--export", "parquet"), "name a file with --output"),
        (("--output", "x.csv"), "--output goes with --export"),
        (("--export", "csv", "--output", "no/such/x.csv"), "cannot write no/such/x.csv"),
    ],
)
def test_what_cannot_be_written_is_one_clear_line(
    folder: Path, arguments: tuple[str, ...], told: str
) -> None:
    assert told in moeagent(folder, "findings", *arguments, code=2).stderr


def test_without_pyarrow_the_error_names_the_extra(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=folder, env=environment(folder), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "pip install 'moeagent[parquet]'" in done.stderr
    assert not (folder / "x.parquet").exists()
