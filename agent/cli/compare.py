"""`moeagent compare`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunsRoot

if TYPE_CHECKING:
    from moeagent.agent.show.compare import Chosen


def command(
    names: Annotated[
        list[str], typer.Argument(metavar="RUN RUN...", help="Runs, or single hypotheses such as last:H3.")
    ],
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Runs or hypotheses side by side, where they share host, model and workload; says why where not.

    Example: moeagent compare 20261128 20261129 last:H3
    """
    from moeagent.agent.show.as_json import print_json
    from moeagent.agent.show.compare import compare, comparison_text
    from moeagent.agent.show.text import console
    from moeagent.memory.errors import InputError

    if len(names) < 2:
        raise InputError("name at least two runs to compare; `moeagent runs` lists them")
    found = compare([_chosen(runs, name) for name in names])
    if as_json:
        print_json(found.to_json())
    else:
        console().print(comparison_text(found))
    if len(found.shown) < 2:
        raise InputError(f"nothing can be compared with {found.shown[0].name}: {found.refused[0][1]}")


def _chosen(runs: Path, name: str) -> "Chosen":
    from moeagent.agent.show.compare import Chosen
    from moeagent.memory.review import check_id
    from moeagent.memory.run_folder import find_run
    from moeagent.memory.run_view import RunView

    run, _, hypothesis = name.partition(":")
    view = RunView.read(find_run(runs, run))
    if hypothesis:
        check_id(view.run, view.ledger, hypothesis)
    return Chosen(view, hypothesis or None)
