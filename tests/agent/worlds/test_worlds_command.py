"""`moeagent worlds` as a user calls it."""

import json
import subprocess
import sys

from own_worlds import EXAMPLE, write_bad

KEYS = {"name", "best_over_oracle", "launches_to_95", "crashed", "gpu_hours", "false_gains", "true_gains"}


def worlds(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moeagent.agent", "worlds", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_one_object_with_the_keys_of_the_reference() -> None:
    ended = worlds("--policy", "coordinate", "--worlds", "2", "--seed", "3", "--launches", "3", "--json")
    assert ended.returncode == 0
    report = json.loads(ended.stdout)
    assert {k: report[k] for k in ("policy", "seed", "launches")} == {
        "policy": "coordinate", "seed": 3, "launches": 3,
    }  # fmt: skip
    assert [set(world) for world in report["worlds"]] == [KEYS, KEYS]


def test_a_table_that_says_simulated() -> None:
    ended = worlds("--world", f"{EXAMPLE}:toy", "--worlds", "1", "--launches", "6")
    assert ended.returncode == 0
    assert "simulated worlds, 6 launches each" in ended.stdout


def test_a_bad_world_is_one_line_and_exit_code_2(tmp_path) -> None:
    ended = worlds("--world", write_bad(tmp_path, "raises"), "--worlds", "1")
    assert ended.returncode == 2
    assert "launch raised KeyError" in ended.stderr
    assert "Traceback" not in ended.stderr
