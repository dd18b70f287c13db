"""A client that gets too little of a core says so itself."""

import os
import subprocess
import sys

import pytest
from bench.loadgen.clients import Load, ours
from bench.loadgen.truth import TruthServer

pytestmark = pytest.mark.part("cc")
HOGS = 4


def test_a_starved_client_declares_its_rung_invalid(tmp_path, truth: TruthServer) -> None:
    truth.reset()
    core = str(max(os.sched_getaffinity(0)))
    load = Load(truth.url, concurrency=64, requests=128)
    client = ours(load, tmp_path, realtime=False)
    hog = ["taskset", "-c", core, sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(hog) for _ in range(HOGS)]
    try:
        done = subprocess.run(
            ["taskset", "-c", core, *client.argv],
            input=client.stdin,
            capture_output=True,
            timeout=120,
            check=True,
        )
    finally:
        for process in hogs:
            process.kill()
            process.wait()

    assert client.rung is not None
    rung = client.rung(done.stdout)

    assert rung.completed == 128
    assert not rung.client.valid
    assert rung.invalid
    assert any(word in rung.invalid for word in ("of a core", "lags", "late"))
