"""What the command line says, as settings."""

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from moeagent.agent.pause import Slice
from moeagent.agent.settings import LimitSettings
from moeagent.memory.errors import InputError
from moeagent.memory.records import FlagValue
from moeagent.memory.records.approval import Answer

if TYPE_CHECKING:
    from moeagent.agent.show.session import Output


def limits(words: list[str]) -> dict[str, Any]:
    """`experiments=20` as settings to lay over. Raises InputError for a limit that does not exist."""
    given: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in LimitSettings.model_fields:
            near = get_close_matches(name, LimitSettings.model_fields, n=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"limits are {', '.join(LimitSettings.model_fields)}"
            )
            raise InputError(f"--limit {word}: {hint}")
        if not value[:1].isdigit():
            raise InputError(f"--limit {word}: write the new limit as a number, such as {name}=20")
        try:
            given[name] = float(value) if "." in value else int(value)
        except ValueError:
            raise InputError(f"--limit {word}: write a number, such as {name}=20") from None
    try:
        LimitSettings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"--limit {first['loc'][0]}={first['input']}: {first['msg']}") from None
    return {"limits": given} if given else {}


def output(as_json: bool, json_events: bool) -> "Output":
    """What goes to standard output. Raises InputError where two things should."""
    if as_json and json_events:
        raise InputError("--json prints one object, --json-events one a line: choose one of them")
    return "json" if as_json else "events" if json_events else "text"


def pause_after(words: list[str]) -> Slice | None:
    """`launches=3`, `minutes=6` as a slice of a run; None without any. Raises InputError."""
    given = dict(word.partition("=")[::2] for word in words)
    try:
        return Slice.model_validate_strings(given) if given else None
    except ValidationError:
        raise InputError(
            f"--pause-after {' '.join(words)}: write launches=N or minutes=N, both more than 0"
        ) from None


def approval(mode: str, policy: Path | None) -> dict[str, Any]:
    """`--approve risky --policy FILE` as settings to lay over. Raises InputError."""
    from moeagent.agent.approval.policy import Mode
    from moeagent.agent.approval.policy_file import read_policy

    if mode and mode not in get_args(Mode):
        raise InputError(f"--approve {mode}: write {', '.join(get_args(Mode))}")
    given: dict[str, Any] = {"approve": mode} if mode else {}
    return given | ({"policy": read_policy(policy).model_dump(mode="json")} if policy else {})


def answer(*, approve_next: bool, decline_next: bool, skip_next: bool) -> Answer | None:
    """The answer to the question that a run waits with. Raises InputError for two of them."""
    given: dict[Answer, bool] = {"yes": approve_next, "no": decline_next, "skip": skip_next}
    said = [each for each, wanted in given.items() if wanted]
    if len(said) > 1:
        raise InputError("--approve-next, --decline-next and --skip-next exclude each other: give one")
    return said[0] if said else None


def ladder(text: str) -> tuple[int, ...]:
    """`1,10,256` as rising concurrencies. Raises InputError."""
    try:
        values = sorted({int(part) for part in text.split(",")})
    except ValueError:
        values = [0]
    if values[0] < 1:
        raise InputError(f"--concurrency {text}: write positive numbers with commas, such as 1,10,256,1024")
    return tuple(values)


def flags(text: list[str]) -> dict[str, FlagValue]:
    """`--flag "--tp-size 8"` words as flags: a number where it reads as one, True without a value."""
    found: dict[str, FlagValue] = {}
    for word in text:
        name, _, value = word.strip().replace("=", " ", 1).partition(" ")
        if not name.startswith("-"):
            raise InputError(
                f"--flag {word!r}: write the engine's flag with its dashes, such as '--tp-size 8'"
            )
        if " --" in f" {value}":
            raise InputError(f"--flag {word!r}: this is more than one flag: repeat --flag for each of them")
        found[name] = typed(value.strip()) if value.strip() else True
    return found


def typed(text: str) -> FlagValue:
    """An integer, a decimal number, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def variables(words: list[str]) -> dict[str, str]:
    """`NAME=value` words as environment variables. Raises InputError."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InputError(f"--env {word!r}: write NAME=value, such as NCCL_MIN_NCHANNELS=8")
        found[name] = value
    return found


def settings(words: list[str]) -> dict[str, Any]:
    """`goal.min_effect=0.05` words as settings to lay over: TOML values, or plain text. Raises InputError."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        section, _, name = key.strip().partition(".")
        if not equals or not section:
            raise InputError(f"--set {word}: write KEY=VALUE, such as goal.min_effect=0.05")
        read = _toml_value(value.strip())
        if not name:
            found[section] = read
        elif isinstance(found.setdefault(section, {}), dict):
            found[section][name] = read
    return found


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
