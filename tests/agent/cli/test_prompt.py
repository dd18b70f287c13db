import json

import pytest
import typer
from typer.testing import CliRunner

from moeagent.agent.cli.prompt import command
from moeagent.memory.errors import InputError
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.tape import Tape
from moeagent.prompts.loader import load_prompt
from moeagent.tools.llm.records import Completion, CompletionRequest

app = typer.Typer()
app.command()(command)


def invoke(*arguments):
    result = CliRunner().invoke(app, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


@pytest.fixture
def runs(tmp_path):
    """A run whose model was asked twice, the second time without an answer."""
    folder = RunFolder.create(tmp_path, "20260101-000000-abcd")
    tape = Tape.record(folder.tape, {"run": folder.id})
    rejected = load_prompt("rejected").render(problems="- --nonsense", left="1")
    for content, answer in (("Name?", "\x1b[31mA"), (rejected, "B")):
        body = {"model": "m", "messages": [{"role": "user", "content": content}]}
        request = CompletionRequest(base_url="http://x/v1", deadline_s=5, attempts=3, body=body)
        completion = Completion(content=answer).model_dump(mode="json")
        tape.perform("complete", request.model_dump(mode="json"), lambda said=completion: said)
    tape.close()
    return tmp_path


def test_the_templates_are_listed_with_their_versions():
    told = json.loads(invoke("--json"))["prompts"]
    assert [p["name"] for p in told] == ["cause", "engineer", "looked_up", "rejected", "turn"]
    assert "{{goal}}" in invoke("turn")


def test_what_the_model_saw_and_said_is_shown_without_terminal_codes(runs):
    output = invoke("--run", "20260101-000000-abcd", "--runs", str(runs))
    assert "Name?" in output
    assert "[31mA" in output
    assert "\x1b[31mA" not in output


def test_one_step_and_one_prompt_can_be_chosen(runs):
    chosen = ("--run", "20260101-000000-abcd", "--runs", str(runs), "--json")
    told = json.loads(invoke("rejected", *chosen, "--step", "2"))["completions"]
    assert len(told) == 1
    assert "--nonsense" in told[0]["messages"][0]["content"]
    assert told[0]["completion"]["content"] == "B"
    assert json.loads(invoke("rejected", *chosen, "--step", "1"))["completions"][0]["messages"] == []


@pytest.mark.parametrize(
    "arguments", [("nonsense",), ("--run", "20260101-000000-abcd", "--step", "3"), ("--run", "x")]
)
def test_bad_input_is_one_clear_error(arguments, runs):
    with pytest.raises(InputError):
        invoke(*arguments, "--runs", str(runs))
