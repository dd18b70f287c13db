"""kill -9 at tape events: in virtual time after each one, with real processes around each kind of effect."""

import json
import random
import secrets
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal

import pytest
from e2e.command import (
    environment,
    kill_hard,
    kinds,
    moeagent,
    moeagent_json,
    start,
    tagged_processes,
    tape_lines,
    wait_for,
)
from e2e.small_run import SMALL

from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.ports import listening_ports

SETTINGS = (
    SMALL.replace("experiments = 2", "experiments = 1")
    .replace("launches = 2", "launches = 1")
    .replace("launches = 6", "launches = 2")
)
MEASURED = (
    SETTINGS
    + """
[[idea]]
statement = "Smaller chunks keep the decoding even"
flags = { "--chunked-prefill-size" = 4096 }
"""
)
SEED = 20261129
AT_ONCE = 4
PATIENCE_S = 900.0
"""For a machine that does much else."""
INSIDE_S = {"survey": 1.0, "start": 2.0, "calibrate": 0.3, "load": 0.5, "outputs": 0.3, "stop": 0.5}
"""About how long each effect takes here; the others are over at once."""
SAMPLE_EVERY = 60
"""One event in so many is tried in CI, every one with --full; each is killed twice, one of them mid-write."""


@pytest.mark.timeout(7200)
def test_kill_9_in_virtual_time_changes_nothing(full: bool, tmp_path: Path) -> None:
    every = 1 if full else SAMPLE_EVERY
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("virtual_campaign.py")), str(tmp_path), str(every)],
        env=environment(tmp_path, PYTHONWARNINGS="default"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    print(f"\nvirtual time: {told['tried']} points tried, {told['tried'] - len(told['failures'])} passed")
    assert told["failures"] == {}
    assert told["decisions"].count("hypothesis") == 6
    assert told["tried"] >= 2 * (told["lines"] // every)


@dataclass(frozen=True)
class Point:
    """When to kill: as an effect begins, somewhere inside it, or when its answer is on the tape."""

    kind: str
    nth: int
    """Of its kind, from 0."""
    when: Literal["before", "inside", "after"]
    delay_s: float = 0.0


def run_and_kill(folder: Path, run: str, point: Point) -> bool:
    """Start a run and kill it at this point; False when it ended before."""
    process = start(folder, "run", "--run-id", run)
    wait_for(lambda: reached(folder, run, point) or process.poll() is not None, str(point), PATIENCE_S)
    with suppress(subprocess.TimeoutExpired):
        process.wait(point.delay_s)
    ended = process.poll() is not None
    kill_hard(process)
    return not ended


def reached(folder: Path, run: str, point: Point) -> bool:
    lines = tape_lines(folder, run)
    asked = [n for n, line in enumerate(lines) if line["type"] == "request" and line["kind"] == point.kind]
    wanted = asked[point.nth] if len(asked) > point.nth else len(lines)
    return len(lines) > wanted + (point.when == "after")


def statements(folder: Path, run: str) -> list[str]:
    """Numbers of a real machine differ from run to run; what is concluded first does not."""
    log = moeagent_json(folder, "log", run)
    assert log["status"] == "finished"
    return [h["statement"] for h in log["hypotheses"]]


def measured(folder: Path, run: str) -> list[Any]:
    """Launch and load of each measurement, in order; a busy machine may ask for some more of them."""
    lines = tape_lines(folder, run)
    return [
        (line["request"]["launch"], line["request"]["spec"])
        for line, following in pairwise(lines)
        if line["type"] == "request" and line["kind"] == "load" and following["type"] == "response"
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "moeagent.toml").write_text(MEASURED)
    run = f"calm-{secrets.token_hex(3)}"
    moeagent(folder, "run", "--run-id", run)
    return folder, run


def points(kinds: list[str], full: bool) -> list[Point]:
    """Before, inside and after each effect of the run, or a few around a start, a load and a stop."""
    if not full:
        inside = Point("load", 1, "inside", 0.2)
        return [Point("start", 0, "before"), Point("start", 1, "after"), inside, Point("stop", 0, "before")]
    chance = random.Random(SEED)
    tried = []
    for n, kind in enumerate(kinds):
        nth = kinds[:n].count(kind)
        tried += [Point(kind, nth, "before"), Point(kind, nth, "after")]
        if kind in INSIDE_S:
            tried.append(Point(kind, nth, "inside", round(chance.uniform(0.0, INSIDE_S[kind]), 2)))
    return tried


@pytest.mark.timeout(7200)
def test_kill_9_with_real_processes_leaves_nothing_and_loses_nothing(
    full: bool, undisturbed: tuple[Path, str], tmp_path: Path
) -> None:
    calm = (statements(*undisturbed), measured(*undisturbed))
    tried = points(kinds(*undisturbed), full)
    folders = [tmp_path / str(number) for number in range(len(tried))]
    # A point waits as much as it works, and shares nothing with the others.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(lambda point, folder: survived(folder, point, calm), tried, folders))
    failures = [f"{point}: {wrong}" for point, (_, wrong) in zip(tried, outcomes, strict=True) if wrong]
    killed = sum(was_killed for was_killed, _ in outcomes)
    print(
        f"\nreal processes: {len(tried)} points tried, {len(tried) - len(failures)} passed, "
        f"{killed} killed before their end"
    )
    assert failures == []
    assert killed >= (40 if full else len(tried) - 1)


def survived(folder: Path, point: Point, calm: tuple[list[str], list[Any]]) -> tuple[bool, str]:
    """Kill a run there and resume it: whether it was killed before its end, and what is wrong."""
    folder.mkdir()
    run = f"chaos-{secrets.token_hex(3)}"
    (folder / "moeagent.toml").write_text(MEASURED)
    killed = run_and_kill(folder, run, point)
    moeagent(folder, "resume", run, timeout_s=PATIENCE_S)
    checks = (
        ("another log", statements(folder, run) == calm[0]),
        ("a measurement is missing", rungs_of(measured(folder, run)) == rungs_of(calm[1])),
        ("a measurement was made twice", each_once(measured(folder, run))),
        ("a process is left", not tagged_processes(f"{run}/")),
        ("a port is left", not ports_of(folder, run) & listening_ports(LocalHost())),
    )
    wrong = ", ".join(name for name, right in checks if not right)
    if not wrong:
        rmtree(folder)
    return killed, wrong


def rungs_of(measurements: list[Any]) -> set[tuple[str, int]]:
    return {(launch, spec["concurrency"]) for launch, spec in measurements}


def each_once(measurements: list[Any]) -> bool:
    return len({json.dumps(each, sort_keys=True) for each in measurements}) == len(measurements)


def ports_of(folder: Path, run: str) -> set[int]:
    """The ports of all servers that the run started."""
    ports = {int(file.read_text()) for file in (folder / ".moeagent" / run).glob("*/port")}
    assert ports
    return ports


def test_a_second_resume_of_a_running_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "moeagent.toml").write_text(SETTINGS)
    run = f"twice-{secrets.token_hex(3)}"
    process = start(tmp_path, "run", "--run-id", run)
    try:
        wait_for(lambda: len(tape_lines(tmp_path, run)) > 3, "the survey")
        refused = moeagent(tmp_path, "resume", run, code=2)
        assert f"moeagent process {process.pid} on" in refused.stderr
        assert f"kill {process.pid}" in refused.stderr
    finally:
        process.terminate()
        process.communicate(timeout=120)
    assert not tagged_processes(f"{run}/")
