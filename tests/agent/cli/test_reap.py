"""`moeagent reap` stops what earlier runs left, and nothing else."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from moeagent.agent.cli import reap
from moeagent.memory.lock import held
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import Process, ProcessSpec, probe, start_detached, stop

app = typer.Typer()
app.command()(reap.command)
HOST = LocalHost("local")


@pytest.fixture
def run() -> str:
    return f"reaped-{secrets.token_hex(4)}"


@pytest.fixture
def leftover(tmp_path: Path, run: str) -> Iterator[Process]:
    spec = ProcessSpec(Command(("sleep", "600")), str(tmp_path / "box" / "L1"), f"{run}/L1")
    process = start_detached(HOST, spec)
    yield process
    stop(HOST, process, grace_s=1.0)


def reaped(tmp_path: Path, run: str, *arguments: str) -> Any:
    where = ["--host", "local", "--run", run, "--runs", str(tmp_path / "runs")]
    done = CliRunner().invoke(app, [*where, "--json", *arguments])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_leftovers_are_listed_and_not_touched_without_consent(
    tmp_path: Path, run: str, leftover: Process
) -> None:
    told = reaped(tmp_path, run)
    assert [(p["tag"], p["pid"]) for p in told["found"]] == [(f"{run}/L1", leftover.pid)]
    assert told["stopped"] == []
    assert probe(HOST, leftover).alive


def test_leftovers_are_stopped_with_yes(tmp_path: Path, run: str, leftover: Process) -> None:
    (report,) = reaped(tmp_path, run, "--yes")["stopped"]
    assert report["gone"]
    assert not probe(HOST, leftover).alive
    assert reaped(tmp_path, run)["found"] == []


def test_servers_of_a_run_that_is_under_way_are_left_alone(
    tmp_path: Path, run: str, leftover: Process
) -> None:
    folder = tmp_path / "runs" / run
    folder.mkdir(parents=True)
    with held(folder):
        told = reaped(tmp_path, run, "--yes")
    assert "moeagent process" in told["found"][0]["in_use_by"]
    assert told["stopped"] == []
    assert probe(HOST, leftover).alive


def test_a_run_whose_name_only_begins_alike_is_another(tmp_path: Path, run: str, leftover: Process) -> None:
    assert reaped(tmp_path, run[:-2], "--yes")["found"] == []
    assert probe(HOST, leftover).alive


def test_people_read_what_is_left_and_how_to_stop_it(tmp_path: Path, run: str, leftover: Process) -> None:
    done = CliRunner().invoke(app, ["--host", "local", "--run", run, "--runs", str(tmp_path / "runs")])
    assert f"{run}/L1  pid {leftover.pid}" in done.stdout
    assert "stop them with --yes" in done.stdout
