"""`moeagent doctor` on this machine and on the simulated one."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from moeagent.agent.cli.doctor import command
from moeagent.memory.errors import HostError, InputError
from moeagent.tools.engines.tiny_moe import write_tiny_moe


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No moeagent.toml of the developer is read."""
    monkeypatch.chdir(tmp_path)


def doctor(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.part("llamacpp")
def test_an_engine_that_works(tmp_path: Path) -> None:
    model = write_tiny_moe(tmp_path / "tiny.gguf")
    shown = doctor("--host", "local", "--engine", "llamacpp", "--model", str(model))
    assert shown.exit_code == 0, shown.output
    assert "qwen3moe" in shown.output
    assert "Nothing stands in the way of a campaign." in shown.output


@pytest.mark.part("llamacpp")
def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    shown = doctor("--host", "local", "--engine", "llamacpp", "--model", str(tmp_path / "nope.gguf"))
    assert shown.exit_code == InputError.exit_code
    assert "There is no model at" in shown.output


def test_json_holds_facts_and_findings() -> None:
    shown = doctor("--host", "sim", "--json")
    assert shown.exit_code == 0, shown.output
    (survey,) = json.loads(shown.output)
    assert survey["host"]["simulated"] is True
    assert len(survey["host"]["gpus"]) == 8
    assert survey["engine"]["version"] == "0.5.9"


def test_an_unknown_engine_names_the_nearest() -> None:
    shown = doctor("--host", "local", "--engine", "sgalng")
    assert isinstance(shown.exception, InputError)
    assert "Did you mean sglang?" in str(shown.exception)


def test_an_unreachable_host() -> None:
    shown = doctor("--host", "nobody@127.0.0.1:1", "--engine", "sglang")
    assert isinstance(shown.exception, HostError)
    assert "nobody@127.0.0.1" in str(shown.exception)
