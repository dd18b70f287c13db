"""Rates of false and missed claims: three campaigns of each kind in CI, 400 of each under `make bench`."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_placebo.py")


@pytest.mark.timeout(3 * 3600)
def test_placebo_claims_nothing_and_a_planted_gain_is_found(request):
    campaigns = 400 if request.config.getoption("--full", default=False) else 3
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--campaigns", str(campaigns)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
