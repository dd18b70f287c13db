"""`moeagent doctor RUN`: what is wrong with a run's folder and what can be saved."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from moeagent.agent.cli import doctor
from moeagent.memory.lock import held
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.tape import Tape

app = typer.Typer()
app.command()(doctor.command)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder.create(tmp_path, "night")
    tape = Tape.record(folder.tape, {"run": "night", "parent": None})
    for n in range(3):
        tape.decide("round", {"n": n})
    tape.close()
    return folder


def asked(folder: RunFolder, *arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["night", "--runs", str(folder.path.parent), *arguments])
    assert done.exit_code == code, done.output
    return done.stdout


def damage(folder: RunFolder) -> None:
    folder.tape.write_bytes(folder.tape.read_bytes().replace(b'"n":1', b'"n":7'))


def test_a_sound_run_can_go_on(folder: RunFolder) -> None:
    told = asked(folder)
    assert "sound, 4 lines" in told
    assert "lock     free" in told
    assert "moeagent resume night" in told


def test_a_held_run_names_its_holder(folder: RunFolder) -> None:
    with held(folder.path):
        assert "held by moeagent process" in asked(folder)


def test_a_damaged_run_says_what_can_be_saved(folder: RunFolder) -> None:
    damage(folder)
    told = asked(folder, code=6)
    assert "tape line 3 does not match its checksum" in told
    assert "up to line 2" in told
    assert "moeagent doctor night --salvage" in told


def test_salvage_makes_a_new_run_and_never_writes_over_one(folder: RunFolder) -> None:
    damage(folder)
    assert json.loads(asked(folder, "--salvage", "--json"))["salvaged"] == "night-salvaged"
    assert "moeagent resume night-salvaged-2" in asked(folder, "--salvage")
