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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
DEFAULT_RUNS = Path("runs")
