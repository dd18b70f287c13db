"""The arrows of ARCHITECTURE.md, read from the code's own imports."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "agent": {"agent", "tools", "memory", "prompts"},
    "tools": {"tools", "memory"},
    "memory": {"memory"},
    "prompts": {"prompts", "memory"},
}
TOOLS_SEE_OF_MEMORY = ("moeagent.memory.records", "moeagent.memory.errors", "moeagent.memory.tape")
APART = {
    "tools/sim": ("moeagent.tools.predict", "moeagent.tools.stats", "moeagent.agent"),
    "tools/predict": ("moeagent.tools.sim",),
    "tools/stats": ("moeagent.tools.sim",),
    "agent/proposers": ("moeagent.tools.sim",),
}


def modules() -> list[Path]:
    return [p for folder in MAY_IMPORT for p in sorted((ROOT / folder).rglob("*.py"))]


def imports_of(path: Path) -> set[str]:
    """Full names of what a module imports of ours, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("moeagent")}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows_run_one_way(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    for name in imports_of(path):
        assert name.split(".")[1] in MAY_IMPORT[folder], f"{path} imports {name}"
        if folder == "tools" and name.startswith("moeagent.memory"):
            assert name.startswith(TOOLS_SEE_OF_MEMORY), f"{path} imports {name}"


@pytest.mark.parametrize(("folder", "banned"), APART.items())
def test_the_simulated_machine_and_those_who_judge_it_do_not_know_each_other(
    folder: str, banned: tuple[str, ...]
) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        for name in imports_of(path):
            assert not name.startswith(banned), f"{path} imports {name}"


def test_no_circles_between_modules() -> None:
    names = {
        ".".join(("moeagent", *p.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): p
        for p in modules()
    }
    graph = {name: _top_level(path) & names.keys() for name, path in names.items()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for following in graph[name]:
                visit(following, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def _top_level(path: Path) -> set[str]:
    """Imports that run when the module is imported; those inside functions break no circle's import."""
    tree = ast.parse(path.read_text())
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_every_package_is_in_the_wheel() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    on_disk = {
        ".".join(("moeagent", *p.parent.relative_to(ROOT).parts))
        for folder in MAY_IMPORT
        for p in (ROOT / folder).rglob("__init__.py")
    }
    assert on_disk == listed
