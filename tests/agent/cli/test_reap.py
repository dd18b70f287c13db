"""`moeagent reap` stops what earlier runs left, and nothing else."""

import json
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from parts.containers import Runtime, runtime
from typer.testing import CliRunner

from moeagent.agent.cli import reap
from moeagent.memory.lock import held
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import Process, ProcessSpec, probe, start_detached, stop
from moeagent.tools.hosts.wrapped import Started, write_started

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


@pytest.fixture
def docker(tmp_path: Path) -> Iterator[Runtime]:
    with runtime(tmp_path / "runtime") as made:
        yield made


def contained(docker: Runtime, folder: str, tag: str) -> Process:
    """A container as a launch leaves it when moeagent and the client were killed."""
    wrapper = docker.wrapper("run", "image")
    write_started(HOST, Started(tag=tag, folder=folder, wrapper=wrapper))
    command = wrapper.tagged(Command((*wrapper.prefix, "sleep", "600")), tag)
    client = start_detached(HOST, ProcessSpec(command, folder, tag))
    for _ in range(600):
        if docker.running():
            break
        signal.sigtimedwait([], 0.05)
    os.killpg(client.session, signal.SIGKILL)
    return client


def test_containers_whose_client_died_are_listed_and_stopped(
    tmp_path: Path, run: str, docker: Runtime
) -> None:
    docker.hide(True)
    folder = tmp_path / "box" / run / "L1"
    contained(docker, str(folder), f"{run}/L1")
    (tmp_path / "moeagent.toml").write_text(f'[host]\nfolder = "{tmp_path}/box"\n')
    here = ("--config", str(tmp_path / "moeagent.toml"))
    told = reaped(tmp_path, run, *here)
    assert [(w["tag"], w["wrapper"], len(w["ids"])) for w in told["wrapped"]] == [(f"{run}/L1", "docker", 1)]
    assert len(docker.running()) == 1
    assert reaped(tmp_path, run[:-2], "--yes", *here)["wrapped"] == []
    stopped = reaped(tmp_path, run, "--yes", *here)["stopped"]
    assert all(report["gone"] for report in stopped)
    assert docker.containers() == []
    assert reaped(tmp_path, run, *here)["wrapped"] == []


def test_a_runtime_that_does_not_answer_is_told(tmp_path: Path, run: str, docker: Runtime) -> None:
    folder = tmp_path / "box" / run / "L1"
    contained(docker, str(folder), f"{run}/L1")
    (tmp_path / "moeagent.toml").write_text(f'[host]\nfolder = "{tmp_path}/box"\n')
    docker.program.write_text("#!/bin/sh\necho cannot connect to the daemon >&2\nexit 1\n")
    words = ["--host", "local", "--run", run, "--config", str(tmp_path / "moeagent.toml")]
    done = CliRunner().invoke(app, [*words, "--runs", str(tmp_path / "runs")])
    assert done.exit_code == 3
    assert "docker cannot say what runs" in done.output
    assert "cannot connect to the daemon" in done.output
