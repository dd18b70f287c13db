"""Policies on the same worlds through the command itself, and the table of what they reached."""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

LAUNCHES = 12
NEVER = math.inf
"""Stands for a world in which 95 % of the oracle was not reached."""
CLOSE = 0.95


def run(policy: str, worlds: int, seed: int, *options: str) -> list[dict[str, Any]]:
    """One policy on some worlds; the entries of its `--json`."""
    command = [
        sys.executable, "-m", "moeagent.agent", "worlds", "--policy", policy, "--worlds", str(worlds),
        "--seed", str(seed), "--launches", str(LAUNCHES), "--json", *options,
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)["worlds"]
    return found


def run_all(
    policies: Sequence[str], worlds: int, seed: int, jobs: int = 2
) -> dict[str, list[dict[str, Any]]]:
    """Every policy on the same worlds."""
    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(policies, pool.map(lambda p: run(p, worlds, seed), policies), strict=True))


def ratio(worlds: list[dict[str, Any]]) -> float:
    """Median value of the configuration returned over the oracle's."""
    return median(world["best_over_oracle"] for world in worlds)


def close(worlds: list[dict[str, Any]]) -> float:
    """Share of worlds in which it is within 5 % of the oracle."""
    return sum(world["best_over_oracle"] >= CLOSE for world in worlds) / len(worlds)


def launches_to_95(worlds: list[dict[str, Any]]) -> float:
    """Median launches until a configuration within 5 % of the oracle ran."""
    return median(world["launches_to_95"] or NEVER for world in worlds)


def crashed(worlds: list[dict[str, Any]]) -> int:
    """Launches that died, hung or were refused, over all worlds."""
    return sum(world["crashed"] for world in worlds)


def false_gains(worlds: list[dict[str, Any]]) -> int:
    """Worlds in which a gain was claimed that is none."""
    return sum(world["false_gains"] > 0 for world in worlds)


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """One row per policy, or per family; the number of worlds stands in each row."""
    columns = {
        "median": 8,
        ">= 0.95": 9,
        "to 95 %": 9,
        "never": 7,
        "crashed": 9,
        "GPU-h": 8,
        "false": 7,
        "worlds": 8,
    }
    head = f"{'policy':<22}" + "".join(f"{name:>{width}}" for name, width in columns.items())
    rows = [
        f"{name:<22}{ratio(worlds):>8.3f}{close(worlds):>9.0%}{launches_to_95(worlds):>9.1f}"
        f"{sum(w['launches_to_95'] is None for w in worlds):>7}{crashed(worlds):>9}"
        f"{sum(w['gpu_hours'] for w in worlds):>8.0f}{false_gains(worlds):>7}{len(worlds):>8}"
        for name, worlds in results.items()
    ]
    return "\n".join([f"simulated worlds, {LAUNCHES} launches each", head, *rows])


def by_family(worlds: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The worlds under the names of their families: plain-h200-x1-33 is of the family plain."""
    families: dict[str, list[dict[str, Any]]] = {}
    for world in worlds:
        name = world["name"].rpartition("-")[0]
        families.setdefault("plain" if name.startswith("plain") else name, []).append(world)
    return dict(sorted(families.items()))
