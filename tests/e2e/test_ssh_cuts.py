"""The connection breaks at random moments of a campaign over SSH: the work goes on and nothing is lost."""

import secrets
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from e2e.command import moeagent, moeagent_json, tagged_processes, tape_lines
from e2e.ssh_cuts import Cut, box, disturbed, drawn
from parts.llamacpp import tiny_model

from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.ports import listening_ports

SEED = 20261129
RUNS, EACH = 5, 6
"""Thirty moments with --full."""
SAMPLE = [drawn(SEED, 1, EACH)[0]]
"""In CI: the first run's moments."""
RUNGS = {("L1", 1), ("L1", 4), ("L2", 1), ("L2", 4)}
"""What an undisturbed run measures; on a busy machine some more than once, each time with another seed."""

pytestmark = [
    pytest.mark.part("sshd"),
    pytest.mark.part("llamacpp"),
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]


def test_every_cut_is_recovered_from_and_nothing_is_measured_twice(full: bool, tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    recovered, tried = 0, drawn(SEED, RUNS, EACH) if full else SAMPLE
    for number, cuts in enumerate(tried):
        outcome = disturbed_run(tmp_path / str(number), model, ("controller", "host")[number % 2], cuts)
        assert not outcome.relaunched
        recovered += outcome.recovered
    print(f"\nSSH cut at {sum(map(len, tried))} random moments: {recovered} recoveries")
    assert recovered == sum(map(len, tried))


@pytest.mark.part("mounts")
@pytest.mark.parametrize("load_from", ["controller", "host"])
def test_a_host_that_reboots_gets_its_server_back(tmp_path: Path, load_from: str) -> None:
    """Once while the server starts and once under load: what a reboot took is started and measured again."""
    cuts = [Cut("start", 0, 0.7, "rebooted", 0.5), Cut("load", 1, 0.2, "rebooted", 0.5)]
    outcome = disturbed_run(tmp_path / "run", tiny_model(tmp_path), load_from, cuts)
    assert outcome.recovered == 2
    second = outcome.loads[1]
    assert outcome.relaunched == [second]
    assert outcome.cut == [second]


@dataclass
class Outcome:
    """What came of a disturbed run."""

    recovered: int
    loads: list[tuple[str, int]]
    """Launch and concurrency of each load, in order; a rung that the server stood still for comes again."""
    relaunched: list[tuple[str, int]]
    """Rungs before which the server had to be started again."""
    cut: list[tuple[str, int]]
    """Rungs that were measured anew because of a break."""


def disturbed_run(folder: Path, model: Path, load_from: str, cuts: list[Cut]) -> Outcome:
    """One run with these cuts, checked against what an undisturbed one gives."""
    folder.mkdir()
    run = f"cut-{secrets.token_hex(3)}"
    with box(folder, model, load_from) as host:
        code, printed, recovered = disturbed(host, run, cuts)
    assert code == 0, f"{cuts}\n{printed[-4000:]}"
    asked = [
        (line["request"]["launch"], line["request"]["spec"], following["response"])
        for line, following in pairwise(tape_lines(folder, run))
        if line["type"] == "request" and line["kind"] == "load"
    ]
    assert {(launch, spec["concurrency"]) for launch, spec, _ in asked} == RUNGS
    assert len({(launch, spec["seed"]) for launch, spec, _ in asked}) == len(asked), "measured twice"
    assert all(response["alive"] for *_, response in asked)
    assert all(response["rung"]["failed"] == 0 for *_, response in asked), "a cut was taken for a failure"
    log = moeagent_json(folder, "log", run)
    assert log["status"] == "finished"
    assert [h["statement"] for h in log["hypotheses"]] == ["Four slots serve four streams at once"]
    nothing_left(folder, run)
    moeagent(folder, "replay", run)
    rungs = [((launch, spec["concurrency"]), response) for launch, spec, response in asked]
    return Outcome(
        recovered,
        loads=[rung for rung, _ in rungs],
        relaunched=[rung for rung, response in rungs if response["relaunched"]],
        cut=[rung for rung, response in rungs if response["cut"]],
    )


def nothing_left(folder: Path, run: str) -> None:
    """No process, no port."""
    assert not tagged_processes(f"{run}/")
    ports = {int(file.read_text()) for file in (folder / "remote" / run).glob("*/port")}
    assert ports
    assert not ports & listening_ports(LocalHost())
