"""What an engine accepts, read from what it printed: a parser dump, an argparse help, llama-server's help."""

import json
import re
from itertools import pairwise
from typing import Any, Literal

from moeagent.memory.records import Knob
from moeagent.tools.engines.catalogue import Catalogue, FlagEntry, Kind, version_key
from moeagent.tools.engines.dump_parser import MARKER

_JSON_TYPES = frozenset({
    "loads", "json_list_type", "parse_cuda_graph_config_arg", "union_dict_and_str", "parse_dataclass",
    "_parse_type",
})  # fmt: skip
"""Names of the converters of SGLang 0.5.9 to 0.5.23 and vLLM 0.16 to 0.33 that take JSON."""
_INT_TYPES = {"int", "human_readable_int", "human_readable_int_or_auto", "parse_int"}
_FLAG_ACTIONS = re.compile(r"StoreTrue|StoreFalse|BooleanOptional|Help|Version|Deprecated\w*StoreTrue")
_OPTION = re.compile(r"--?[A-Za-z][\w-]*")


def parse_dump(output: str) -> tuple[str | None, tuple[Knob, ...]]:
    """Version and flags from the output of dump_parser; no flags where it holds none."""
    line = next((line for line in reversed(output.splitlines()) if line.startswith(MARKER)), None)
    if line is None:
        return None, ()
    answer = json.loads(line[len(MARKER) :])
    options = answer.get("options") or []
    return answer.get("version"), tuple(
        _knob(option) for option in options if option["action"] != "_HelpAction"
    )


def parse_argparse_help(text: str) -> tuple[Knob, ...]:
    """Flags from the text of an argparse --help: names, aliases and choices; the types are not in it."""
    found = (_help_knob(block.strip()) for block in _blocks(r"^ {1,4}-{1,2}[A-Za-z]", text))
    return tuple(knob for knob in found if knob is not None)


def parse_llama_help(text: str) -> tuple[Knob, ...]:
    """Flags from `llama-server --help`: option lines begin in the first column, help is indented."""
    found = (_llama_knob(block.rstrip()) for block in _blocks(r"^-{1,2}[A-Za-z]", text))
    return tuple(knob for knob in found if knob is not None)


def parse_version(text: str) -> str | None:
    """The first thing in the text that looks like a version or a llama.cpp build number."""
    found = re.search(r"version[:\s]+v?(b?\d[\w.+-]*)", text) or re.search(r"\bv?(\d+\.\d+[\w.+-]*)", text)
    return found.group(1) if found else None


def enrich(knobs: tuple[Knob, ...], known: Catalogue, version: str | None) -> tuple[Knob, ...]:
    """The engine's own flags with what only the catalogue knows: unread, deprecated, types, choices, help."""
    nearest = known.nearest_version(version)
    same_release = version is None or version_key(version)[:3] == version_key(nearest)[:3]
    return tuple(_enriched(knob, known.entry(knob.name), nearest, same_release) for knob in knobs)


def _enriched(knob: Knob, entry: FlagEntry | None, nearest: str, same_release: bool) -> Knob:
    if entry is None:
        return knob
    told = entry.knob(nearest)
    kind = told.kind if knob.kind == "str" and told.kind != "bool" else knob.kind
    names = (knob.name, *knob.aliases)
    main = entry.name if entry.name in names else knob.name
    update: dict[str, Any] = {
        "name": main,
        "aliases": tuple(name for name in names if name != main),
        "kind": kind,
        "help": told.help or knob.help,
        "default": _typed(knob.default, kind),
    }
    if told.status in ("deprecated", "unread") and knob.status == "current":
        update["status"] = told.status
    if knob.choices is None and same_release:
        update["choices"] = told.choices
    if update["default"] is None and same_release:
        update["default"] = told.default
    return knob.model_copy(update=update)


def _typed(default: Any, kind: Kind) -> Any:
    """A default out of a help text as its type; None where it is described in words."""
    if not isinstance(default, str) or kind not in ("int", "float"):
        return default
    try:
        return int(default) if kind == "int" else float(default)
    except ValueError:
        return None


def _blocks(begin: str, text: str) -> list[str]:
    """The text cut before each line that matches; what stands before the first is left out."""
    starts = [match.start() for match in re.finditer(begin, text, re.MULTILINE)]
    return [text[a:b] for a, b in pairwise([*starts, len(text)])] if starts else []


def _knob(option: dict[str, Any]) -> Knob:
    names = [name for name in option["names"] if name.startswith("-")]
    main = _long_name(names)
    assert main is not None
    status: Literal["current", "deprecated"] = "deprecated" if "Deprecated" in option["action"] else "current"
    choices = option["choices"]
    return Knob(
        name=main,
        aliases=tuple(name for name in names if name != main),
        kind=_kind(option),
        choices=tuple(choices) if choices and not _FLAG_ACTIONS.search(option["action"]) else None,
        default=option["default"],
        help=" ".join(option["help"].split()),
        status=status,
    )


def _kind(option: dict[str, Any]) -> Kind:
    kind = option["type"] or ""
    if _FLAG_ACTIONS.search(option["action"]) or option["nargs"] == 0:
        return "bool"
    if kind in _INT_TYPES:
        return "int"
    if kind == "float":
        return "float"
    return "json" if kind in _JSON_TYPES or "json" in kind else "str"


def _long_name(names: list[str]) -> str | None:
    return next((n for n in names if n.startswith("--")), names[0] if names else None)


def _help_knob(block: str) -> Knob | None:
    head, _, tail = block.partition("\n")
    spec = re.split(r"\s{2,}", head, maxsplit=1)
    names = [n for n in _OPTION.findall(re.sub(r"\{[^}]*\}", "", spec[0])) if n.startswith("-")]
    if not names or names[0] in ("-h", "--help"):
        return None
    choices = re.search(r"\{([^}]*)\}", spec[0])
    words = spec[0].replace(",", " ").split()
    main = _long_name(names)
    assert main is not None
    bare = all(word.startswith("-") for word in words)
    explained = " ".join(" ".join([*spec[1:], tail]).split())
    return Knob(
        name=main,
        aliases=tuple(name for name in names if name != main),
        kind="bool" if bare else "str",
        choices=tuple(c.strip() for c in choices.group(1).split(",")) if choices else None,
        help=explained[:400],
    )


def _llama_knob(block: str) -> Knob | None:
    match = re.match(r"((?:-{1,2}[\w-]+(?:,\s*|(?=\s|$)))+)(\s?)(\S.*)?", block, re.DOTALL)
    if match is None:
        return None
    names = _OPTION.findall(match.group(1))
    rest = block[match.end(1) :]
    takes_value = re.match(r" \S", rest) is not None
    value, _, explained = rest.lstrip().partition("  ") if takes_value else ("", "", rest)
    explained = " ".join(explained.split())
    main = _long_name(names)
    if main is None or main in ("--help", "--version"):
        return None
    default = re.search(r"\(default: '?([^,;)']+)", explained)
    return Knob(
        name=main,
        aliases=tuple(name for name in names if name != main),
        kind="str" if takes_value else "bool",
        choices=_llama_choices(value.split("\n")[0], explained),
        default=default.group(1).strip() if default and takes_value else None,
        help=explained[:400],
    )


def _llama_choices(value: str, explained: str) -> tuple[str, ...] | None:
    inline = re.fullmatch(r"[\[{<]([\w+|,.-]+)[\]}>]", value.strip())
    if inline and not re.search(r"\d\.\.\.", value):
        return tuple(re.split(r"[|,]", inline.group(1)))
    allowed = re.search(r"allowed values: ([\w, ]+?)(?: \(|$)", explained)
    return tuple(v.strip() for v in allowed.group(1).split(",")) if allowed else None
