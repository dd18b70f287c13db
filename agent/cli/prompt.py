"""`moeagent prompt`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunsRoot

if TYPE_CHECKING:
    from moeagent.prompts.loader import Prompt


def command(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="A prompt, such as turn; all of them when left out.")
    ] = "",
    run: Annotated[str, typer.Option(help="Show what the model saw and said in this run.")] = "",
    step: Annotated[int, typer.Option(help="Which completion of the run, from 1; 0: every one.", min=0)] = 0,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """The prompts, or what the language model saw and said in a run.

    Example: moeagent prompt turn --run last --step 2
    """
    prompts = [_prompt(n) for n in ([name] if name else _names())]
    found = _seen(prompts[0] if name else None, run, step, runs) if run else [_template(p) for p in prompts]
    if as_json:
        from moeagent.agent.show.as_json import print_json

        print_json({"completions" if run else "prompts": found})
        return
    from moeagent.agent.show.text import console

    screen = console()
    for heading, text in (part for item in found for part in _parts(item)):
        screen.rule(heading, align="left")
        screen.print(_printable(text), soft_wrap=True)


def _names() -> tuple[str, ...]:
    from moeagent.prompts.loader import prompt_names

    return prompt_names()


def _prompt(name: str) -> "Prompt":
    from moeagent.memory.errors import InputError
    from moeagent.prompts.loader import PromptError, load_prompt

    try:
        return load_prompt(name)
    except PromptError as error:
        raise InputError(str(error)) from error


def _template(prompt: "Prompt") -> dict[str, Any]:
    variables = list(prompt.variables)
    return {"name": prompt.name, "version": prompt.version, "variables": variables, "text": prompt.body}


def _seen(prompt: "Prompt | None", run: str, step: int, runs: Path) -> list[dict[str, Any]]:
    """The run's completions; of a named prompt only the messages that were rendered from it."""
    from moeagent.memory.errors import InputError
    from moeagent.memory.run_folder import find_run
    from moeagent.tools.llm.transcript import read_exchanges

    folder = find_run(runs, run)
    exchanges = read_exchanges(folder.tape)
    if step > len(exchanges) or not exchanges:
        raise InputError(
            f"run {folder.id} asked the language model {len(exchanges)} times; there is no step {step}"
        )
    found = []
    for exchange in exchanges if step == 0 else (exchanges[step - 1],):
        told = exchange.model_dump(mode="json")
        if prompt is not None:
            told["messages"] = [m for m in told["messages"] if prompt.rendered(m["content"])]
        found.append(told)
    return found


def _parts(item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Headings and texts of one template or one completion."""
    if "version" in item:
        yield f"{item['name']}, version {item['version']}: {', '.join(item['variables'])}", item["text"]
        return
    for message in item["messages"]:
        yield f"step {item['step']}, tape line {item['line_no']}: {message['role']}", message["content"]
    answer = item["completion"]
    if answer is None:
        yield f"step {item['step']}: no answer", "the run ended before it came"
    else:
        heading = (
            f"step {item['step']}: the answer, {answer['output_tokens']} tokens in {answer['elapsed_s']} s"
        )
        yield heading, answer["content"] or answer["message"] or "empty"


def _printable(text: str) -> str:
    """The text without terminal codes: it was written by a model."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
