"""A small sample with fixed seeds of what `run_placebo.py --campaigns 400` shows."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("run_placebo.py")


def test_placebo_claims_nothing_and_a_planted_gain_is_found():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--campaigns", "3", "--jobs", "2"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "claim a gain:     0 of 3" in done.stdout
    assert "found:              3 of 3" in done.stdout
