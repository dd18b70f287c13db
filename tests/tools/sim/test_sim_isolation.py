"""Predictors, playbook and judge may not import the simulated machine, nor it them."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
APART = ("moeagent.tools.predict", "moeagent.tools.stats", "moeagent.agent")


def imported(folder: str) -> set[str]:
    names: set[str] = set()
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    return names


def test_the_simulated_machine_knows_none_of_those_that_are_judged_by_it() -> None:
    assert not {name for name in imported("tools/sim") if name.startswith(APART)}
    ours = {name for name in imported("tools/sim") if name.startswith("moeagent.")}
    assert all(name.startswith(("moeagent.tools.sim", "moeagent.memory.records")) for name in ours), ours


@pytest.mark.parametrize("folder", ["tools/predict", "tools/stats", "agent/proposers", "tools/diagnosis"])
def test_nobody_that_predicts_or_judges_reads_the_hidden_numbers(folder: str) -> None:
    assert not {name for name in imported(folder) if name.startswith("moeagent.tools.sim")}
