"""Where a fork begins, and what it may change from there on."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from moeagent.agent.drive import amended
from moeagent.agent.recorded_state import settings_of
from moeagent.agent.secret_settings import refuse_secrets
from moeagent.memory.errors import InputError
from moeagent.memory.tape.fork import check_line
from moeagent.memory.tape.lines import Json, TapeFile
from moeagent.prompts.loader import PromptError, Prompts, load_prompt

CHANGEABLE = (
    "goal", "limits", "llm", "prompt", "idea", "space", "approve", "policy", "notify", "start_timeout_s",
    "rung_timeout_s",
)  # fmt: skip
"""What was measured before the fork holds under any of these; the other settings say what was measured."""


def line_of(tape: TapeFile, where: str) -> int:
    """The last tape line to keep: a line number, or for an id such as H3 the line before it was thought of.

    Raises InputError where the tape has neither.
    """
    if where.isdigit():
        check_line(tape, int(where))
        return int(where)
    ideas = {e.body["value"]["id"]: e.line_no for e in tape.entries if e.kind == "hypothesis"}
    if where not in ideas:
        known = f"; hypotheses are {', '.join(ideas)}" if ideas else ""
        raise InputError(
            f"--at {where}: write a line of the tape, 1 to {tape.entries[-1].line_no}, or a hypothesis{known}"
        )
    # Each idea begins with a look at the clock; what a model was asked for it comes after that.
    clocks = (e.line_no for e in tape.entries if e.kind == "clock" and e.line_no < ideas[where])
    return max(clocks, default=ideas[where] - 2) + 1


def check_changes(tape: TapeFile, line: int, changes: Json) -> None:
    """Raise InputError for a change that a fork at this line cannot have."""
    for name in changes:
        if name not in CHANGEABLE:
            raise InputError(
                f"{name} cannot be changed by a fork: what was measured before it was measured with the old "
                f"value. `moeagent run` starts anew; a fork may change {', '.join(CHANGEABLE)}"
            )
    settings = settings_of(tape.header)
    try:
        for amend in (*_amendments(tape, line), changes):
            settings = amended(settings, amend)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"setting {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    refuse_secrets(settings)
    try:
        for name in settings.prompt:
            Prompts(settings.prompt).load(name)
    except PromptError as error:
        raise InputError(str(error)) from None


def own_prompts(words: list[str]) -> dict[str, str]:
    """`turn=my-turn.md` words as prompts by name. Raises InputError for a file or name that is not there."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals:
            raise InputError(f"--prompt {word}: write NAME=FILE, such as turn=my-turn.md")
        try:
            load_prompt(name)
            found[name] = Path(path).read_text("utf-8")
        except (PromptError, OSError, UnicodeDecodeError) as error:
            raise InputError(f"--prompt {word}: {error}") from None
    return found


def _amendments(tape: TapeFile, line: int) -> Iterator[Json]:
    for entry in tape.entries:
        if entry.type == "marker" and entry.line_no <= line:
            yield entry.body.get("amend", {})
