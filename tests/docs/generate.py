"""Writes the generated parts of the documentation, or with --check fails where one is stale.

Graph picture, command reference, settings reference and exit codes come from the code itself.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def graph() -> str:
    """The loop as mermaid text, drawn by LangGraph from the compiled graph."""
    from moeagent.agent.graph import picture

    return f"# The loop\n\nDrawn from `agent/graph.py`.\n\n```mermaid\n{picture().strip()}\n```\n"


def commands() -> str:
    """`--help` of every command, as the program prints it at 100 columns."""
    from typer.testing import CliRunner

    from moeagent.agent.cli.app import COMMANDS, app

    runner = CliRunner(env={"TERMINAL_WIDTH": "100", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    parts = ["# Commands\n"]
    for name in COMMANDS:
        result = runner.invoke(app, [name, "--help"], prog_name="moeagent")
        lines = [line.rstrip() for line in result.output.strip("\n").splitlines()]
        parts.append(f"## moeagent {name}\n\n```text\n" + "\n".join(lines).strip("\n") + "\n```\n")
    return "\n".join(parts)


def settings() -> str:
    """The commented settings file."""
    from moeagent.agent.settings_file import commented_settings

    return f"# Settings\n\nWhat `moeagent init` writes.\n\n```toml\n{commented_settings().strip()}\n```\n"


def exit_codes() -> str:
    """The error tree."""
    from moeagent.memory import errors

    return f"# Errors and exit codes\n\n```text\n{(errors.__doc__ or '').strip()}\n```\n"


PAGES = {"graph.md": graph, "commands.md": commands, "settings.md": settings, "errors.md": exit_codes}


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if check and (not path.exists() or path.read_text() != text):
            stale.append(name)
        elif not check:
            path.write_text(text)
    for name in stale:
        print(f"docs/{name} is not what the code gives: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
