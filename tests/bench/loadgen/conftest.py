from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.loadgen.truth import TruthServer


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TruthServer]:
    """A quick truth server: first token after 10 ms, then one every 2 ms."""
    folder: Path = tmp_path_factory.mktemp("truth")
    with TruthServer(folder, ttft_ms=10, itl_ms=2) as server:
        yield server
