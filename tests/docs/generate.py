"""Writes the generated parts of the documentation, or with --check fails where one is stale.

Graph picture, command reference, settings reference and exit codes come from the code itself.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


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


CONSOLE = re.compile(
    r"(?:<!-- head (?P<head>\d+) -->\n)?```console\n\$ (?P<command>[^\n]+)\n(?P<shown>.*?)```", re.DOTALL
)
MERMAID = re.compile(r"```mermaid\n.*?```", re.DOTALL)


def readme() -> str:
    """The README with the output of its example commands and the picture of the graph, as they are now."""
    from moeagent.agent.graph import picture

    text = (ROOT / "README.md").read_text()
    text = MERMAID.sub(lambda _: f"```mermaid\n{picture().strip()}\n```", text)
    return CONSOLE.sub(_session, text)


def _session(block: re.Match[str]) -> str:
    output = printed(block["command"]).splitlines()
    head = f"<!-- head {block['head']} -->\n" if block["head"] else ""
    most = int(block["head"] or len(output))
    lines = [*output[:most], *(["..."] if len(output) > most else [])]
    return f"{head}```console\n$ {block['command']}\n" + "\n".join(lines).rstrip() + "\n```"


def printed(command: str) -> str:
    """What a moeagent command prints at 100 columns, without colours."""
    words = shlex.split(command)
    env = {"PATH": "/usr/bin:/bin", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-m", "moeagent.agent", *words[1:]],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit {done.returncode}: {done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())


def schema() -> str:
    """Tables of the findings store as SQLite has them, with their meanings, and questions to ask of it."""
    from tempfile import TemporaryDirectory

    from moeagent.memory.findings.documented import QUESTIONS, TABLES
    from moeagent.memory.findings.schema import open_store

    parts = [
        "# The findings store\n",
        "`runs/findings.db` is plain SQLite: `sqlite3` and datasette open it as it is. It is an index over",
        "all runs: `moeagent findings --rebuild` makes it again from the tapes.\n",
    ]
    with TemporaryDirectory() as folder:
        db = open_store(Path(folder) / "findings.db")
        for table, (about, meanings) in TABLES.items():
            parts.append(f"## {table}\n\n{about}\n\n| column | type | meaning |\n| --- | --- | --- |")
            parts += [
                f"| {c.name} | {c.type}{', key' if c.is_pk else ''} | {meanings[c.name]} |"
                for c in db.table(table).columns
            ]
            parts.append("")
        db.close()
    parts.append(
        "`hypotheses_fts` is the full-text index over statement, reason, knobs, verdict and verdict_reason.\n"
    )
    parts.append("## Questions\n")
    parts += [f"### {question}\n\n```sql\n{sql.strip()}\n```\n" for question, sql in QUESTIONS.items()]
    return "\n".join(parts)


PAGES = {
    "docs/schema.md": schema,
    "docs/graph.md": graph,
    "docs/commands.md": commands,
    "docs/settings.md": settings,
    "docs/errors.md": exit_codes,
    "README.md": readme,
}


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for name, make in PAGES.items():
        path, text = ROOT / name, make()
        if check and (not path.exists() or path.read_text() != text):
            stale.append(name)
        elif not check:
            path.write_text(text)
    for name in stale:
        print(f"{name} is not what the code gives: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
