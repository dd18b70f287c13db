"""Prints an installed engine's own argument parser as JSON. Runs under the engine's Python, on its host.

Self-contained (standard library, Python 3.8+): it travels as text and is started as `python -c TEXT ENGINE`.
The last line of output is the marker and the JSON. Exit status 0: parser read; 3: version only; 4: nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module, metadata
from typing import Any

MARKER = "moeagent-parser:"

VLLM_PARSER_CLASSES = ("vllm.utils.argparse_utils", "vllm.utils")
VLLM_BUILDERS = ("vllm.entrypoints.openai.cli_args", "vllm.entrypoints.launchers.cli_args")


def sglang_parser() -> argparse.ArgumentParser:
    """SGLang's parser, filled by its ServerArgs."""
    parser = argparse.ArgumentParser()
    import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return parser


def vllm_parser() -> argparse.ArgumentParser:
    """The parser of `vllm serve`; its modules moved between releases."""
    empty = first_attribute(VLLM_PARSER_CLASSES, "FlexibleArgumentParser")()
    parser: argparse.ArgumentParser = first_attribute(VLLM_BUILDERS, "make_arg_parser")(empty)
    return parser


def first_attribute(modules: tuple[str, ...], name: str) -> Any:
    """The attribute from the first module that has it."""
    failures = []
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            failures.append(str(error))
    raise ImportError("; ".join(failures))


def describe(action: argparse.Action) -> dict[str, Any]:
    """One option as plain data."""
    plain = (bool, int, float, str, type(None))
    return {
        "names": list(action.option_strings),
        "action": type(action).__name__,
        "type": str(getattr(action.type, "__name__", action.type)) if action.type else None,
        "nargs": action.nargs if isinstance(action.nargs, (int, str)) else None,
        "choices": [str(getattr(c, "value", c)) for c in action.choices] if action.choices else None,
        "default": action.default if isinstance(action.default, plain) else None,
        "help": (action.help or "")[:400] if action.help != argparse.SUPPRESS else "",
    }


def main(engine: str) -> int:
    """Prints version and options; returns the exit status."""
    answer: dict[str, Any] = {"engine": engine, "version": None, "options": None, "error": None}
    try:
        answer["version"] = metadata.version(engine)
    except metadata.PackageNotFoundError as error:
        answer["error"] = f"no package {error}"
    try:
        parser = {"sglang": sglang_parser, "vllm": vllm_parser}[engine]()
        answer["options"] = [describe(action) for action in parser._actions if action.option_strings]
    except Exception as error:  # noqa: BLE001 - whatever a foreign package raises while it is imported
        answer["error"] = f"{type(error).__name__}: {error}"[:500]
    sys.stdout.write("\n" + MARKER + json.dumps(answer) + "\n")
    return 0 if answer["options"] else 3 if answer["version"] else 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
