"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="Run id, a unique beginning of it, a run folder, or `last`.")
]
RunsRoot = Annotated[
    Path, typer.Option("--runs", help="Folder of the runs.", envvar="MOEAGENT_RUNS", file_okay=False)
]
PauseAfter = Annotated[
    list[str] | None,
    typer.Option(help="Pause between two launches: launches=3, or minutes=6 (no launch begins after them)."),
]
ApproveMode = Annotated[
    str, typer.Option("--approve", help="never, risky or always: ask before a new configuration is launched.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", help="TOML file of [\\[rule]]s: what to allow, ask or deny.", exists=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
JsonEvents = Annotated[
    bool, typer.Option("--json-events", help="Print one JSON object a line for programs, as it happens.")
]
DEFAULT_RUNS = Path("runs")
