"""What several end-to-end tests share."""

from pathlib import Path

import pytest
from e2e.command import alone_with, moeagent
from e2e.small_run import settings


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run named `done`; nobody may change it."""
    folder = tmp_path_factory.mktemp("finished")
    settings(folder)
    with alone_with("done"):
        moeagent(folder, "run", "--run-id", "done", "--goal", "max-throughput")
    return folder
