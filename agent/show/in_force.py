"""Requested against effective: what a launch was asked for, and what its server says is in force."""

from collections.abc import Iterable
from typing import Any

from rich.table import Table

from moeagent.agent.show.plain import Text
from moeagent.memory.records import Launch
from moeagent.memory.run_view import RunView
from moeagent.tools.engines.effective import differences

NOT_TOLD = "not told"
AS_REQUESTED = "as requested"


def in_force_tables(launches: Iterable[Launch]) -> list[Table]:
    """One for each configuration that said what is in force, by its last launch."""
    last = {launch.config.id: launch for launch in launches if launch.effective}
    return [_table(launch) for launch in last.values()]


def _table(launch: Launch) -> Table:
    """A row for each requested flag: its value, and what became of it."""
    table = Table("flag", "requested", "in force", title=Text(f"{launch.id}: requested and in force"))
    table.title_justify = "left"
    changed = {found.flag: found.effective for found in differences(launch.config, launch.effective)}
    for name, value in sorted(launch.config.flags.items()):
        told = AS_REQUESTED if name in launch.effective else NOT_TOLD
        shown = str(changed[name]) if name in changed else told
        table.add_row(
            Text(name), Text(str(value)), Text(shown, style="bold yellow" if name in changed else "")
        )
    return table


def log_json(view: RunView) -> dict[str, Any]:
    """The hypothesis log, with the requested settings that are not in force beside each launch."""
    told = view.to_json()
    changed = {
        launch.id: [found.model_dump(mode="json") for found in differences(launch.config, launch.effective)]
        for launch in view.ledger.launches
    }
    for part in (told["baseline"], *told["hypotheses"]):
        for launch in part["launches"] if part else ():
            launch["not_as_requested"] = changed[launch["id"]]
    return told
