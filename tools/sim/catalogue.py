"""The command line of the pinned SGLang release: parser, help and server_args line from its catalogue."""

import argparse
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NoReturn

from pydantic import Field

from moeagent.memory.records import EngineFacts, Knob, Record

VERSION = "0.5.9"
PROG = "launch_server.py"


class CommandLineError(Exception):
    """argparse refused the command line: its own output and exit status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class CatalogueFlag(Record):
    """One add_argument call of the engine."""

    flag: str
    dest: str
    type: str
    aliases: tuple[str, ...] = ()
    choices: tuple[str | int, ...] | None = None
    default: Any = None
    help: str = ""

    @property
    def is_switch(self) -> bool:
        """True when the flag takes no value."""
        return self.type in ("flag (store_true)", "flag/bool") and self.dest != "hybrid_kvcache_ratio"


class Catalogue(Record):
    """All flags of one engine release, in the order of its parser."""

    engine: str
    version: str
    source: str
    flags: tuple[CatalogueFlag, ...] = Field(min_length=1)


@cache
def load_catalogue() -> Catalogue:
    """The catalogue of the pinned release."""
    text = (files("moeagent.tools.sim.data") / "sglang_0_5_9.json").read_text()
    return Catalogue.model_validate_json(text)


def _short_int(text: str) -> int:
    units = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}
    return int(float(text[:-1]) * units[text[-1]]) if text[-1:] in units else int(text)


def _nullable_str(text: str) -> str | None:
    return None if text in ("", "None") else text


_TYPES: Mapping[str, Any] = {
    "str": str, "int": int, "float": float, "human_readable_int": _short_int, "nullable_str": _nullable_str,
    "loads": json.loads, "json_list_type": json.loads, "_StoreAction": str,
}  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """argparse that reports instead of leaving the process."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise CommandLineError(message or "", status)

    def error(self, message: str) -> NoReturn:
        raise CommandLineError(f"{self.format_usage()}{self.prog}: error: {message}\n", 2)


def _argument(entry: CatalogueFlag) -> dict[str, Any]:
    options: dict[str, Any] = {"dest": entry.dest, "help": entry.help.replace("%", "%%")}
    if any(alias.startswith("--no-") for alias in entry.aliases):
        return options | {"action": argparse.BooleanOptionalAction, "default": entry.default or False}
    if entry.is_switch:
        return options | {"action": "store_true"}
    if " list (nargs " in entry.type:
        base, _, nargs = entry.type.partition(" list (nargs ")
        options |= {"nargs": nargs.rstrip(")"), "type": _TYPES[base]}
    elif entry.dest == "hybrid_kvcache_ratio":
        options |= {"nargs": "?", "const": 0.5, "type": float}
    else:
        options |= {"type": _TYPES[entry.type]}
    if entry.choices:
        options["choices"] = entry.choices
    return options | {"default": entry.default, "required": entry.dest == "model_path"}


def add_cli_args(parser: argparse.ArgumentParser) -> None:
    """Add every flag of the catalogue to a parser, as the engine's ServerArgs.add_cli_args does."""
    for entry in load_catalogue().flags:
        names = [alias for alias in entry.aliases if not alias.startswith("--no-")]
        parser.add_argument(entry.flag, *names, **_argument(entry))


@cache
def parser() -> argparse.ArgumentParser:
    """The engine's parser; raises CommandLineError where the engine would exit."""
    made = _Parser(prog=PROG)
    add_cli_args(made)
    return made


def parse(argv: list[str]) -> dict[str, Any]:
    """Server arguments by destination name. Raises CommandLineError with the engine's own message."""
    return vars(parser().parse_args(argv))


def server_args_line(args: Mapping[str, Any]) -> str:
    """The dump that the engine prints first."""
    order = [entry.dest for entry in load_catalogue().flags if entry.dest in args and entry.dest != "config"]
    return "server_args=ServerArgs(" + ", ".join(f"{name}={args[name]!r}" for name in order) + ")"


def _kind(entry: CatalogueFlag) -> str:
    if entry.is_switch:
        return "bool"
    if entry.type in ("loads", "json_list_type"):
        return "json"
    return {"int": "int", "human_readable_int": "int", "float": "float"}.get(entry.type, "str")


@cache
def engine_facts() -> EngineFacts:
    """The pinned engine by its own parser."""
    knobs = tuple(
        Knob.model_validate(
            {
                "name": entry.flag,
                "kind": _kind(entry),
                "choices": tuple(map(str, entry.choices)) if entry.choices else None,
                "default": entry.default if isinstance(entry.default, bool | int | float | str) else None,
                "aliases": entry.aliases,
                "help": entry.help,
            }
        )
        for entry in load_catalogue().flags
    )
    return EngineFacts(engine="sglang", version=VERSION, knobs=knobs, source="parser")
