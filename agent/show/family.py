"""Which run came from which: forks with what they changed, and the tree that they make."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.tree import Tree

from moeagent.agent.show.plain import Text
from moeagent.agent.show.visible import short
from moeagent.memory.run_view import RunView

Row = Mapping[str, Any]


def parent_text(view: RunView) -> str:
    """Where a run goes on from and what it changed; empty for one that began by itself."""
    if view.parent is None:
        return ""
    run, line = view.parent
    return f"goes on from {run} at line {line}{changes_text(view.changed)}"


def changes_text(changed: Mapping[str, Any]) -> str:
    """What a fork changed, such as ` with goal.name=min-latency`."""
    told = [_change(section, value) for section, value in changed.items()]
    return f" with {', '.join(told)}" if told else ""


def _change(name: str, value: Any) -> str:
    if name == "idea":
        return f"{len(value)} own ideas"
    if name == "prompt":
        return f"own prompts {', '.join(value)}"
    if isinstance(value, dict):
        return ", ".join(f"{name}.{key}={short(str(inner))}" for key, inner in value.items())
    return f"{name}={short(str(value))}"


def family(rows: Sequence[Row]) -> Tree:
    """Runs as a tree, in the order in which they are given; each fork below the run that it goes on from."""
    names = {row["run"] for row in rows}
    below: dict[str, list[Row]] = {}
    roots = []
    for row in rows:
        parent = row["parent"] and row["parent"]["run"]
        if parent in names:
            below.setdefault(parent, []).append(row)
        else:
            roots.append(row)
    tree = Tree(Text("runs", style="bold"))
    for row in roots:
        _grow(tree, row, below)
    return tree


def _grow(tree: Tree, row: Row, below: Mapping[str, list[Row]]) -> None:
    branch = tree.add(_line(row))
    for child in below.get(row["run"], []):
        _grow(branch, child, below)


def _line(row: Row) -> Text:
    parent = row["parent"]
    came = f" from {parent['run']} line {parent['line']}{changes_text(row['changed'])}" if parent else ""
    mark = " (simulated)" if row["simulated"] else ""
    told = f"  {row['status']}{mark}, {row['hypotheses']} hypotheses, best: {row['best'] or '-'}"
    return Text.assemble((row["run"], "bold"), (came, "cyan"), told)
