"""The command line as a whole: every command answers --help with an example, unknown names suggest."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from moeagent.agent.cli.app import COMMANDS, app

runner = CliRunner()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_json(name: str) -> None:
    result = runner.invoke(app, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Example:" in result.output
    assert "--json" in result.output


def test_unknown_command_suggests_the_nearest() -> None:
    result = runner.invoke(app, ["reprt"])
    assert result.exit_code == 2
    assert "report" in result.output


def test_help_imports_nothing_heavy() -> None:
    """Ratios are benchmarks; what makes --help slow are imports, and those can be named."""
    script = (
        "import sys; from moeagent.agent.cli.app import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'langgraph', 'openai', 'paramiko', 'scipy', 'numpy', 'pydantic', 'matplotlib', 'optuna'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
