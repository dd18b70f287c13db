"""A server over made runs: whole, still written, hostile."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.command import moeagent
from parts.hostile import write_hostile_run
from parts.made_run import write_run
from parts.served import Served, served


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose runs are indexed; tests may add runs, not change these."""
    folder = tmp_path_factory.mktemp("shelf")
    write_run(folder / "runs")
    write_run(folder / "runs", "open", ended=False)
    write_hostile_run(folder / "runs")
    moeagent(folder, "findings", "--rebuild")
    return folder


@pytest.fixture(scope="session")
def site(shelf: Path) -> Iterator[Served]:
    with served(shelf) as running:
        yield running
