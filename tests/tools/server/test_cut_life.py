"""A server's life over SSH (launch, wait, log search, stop) while the connection breaks at random moments."""

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.diagnosis.synthetic import write_log
from parts.sshd import Sshd, free_port, name_of
from parts.wire import Wire

from moeagent.tools.diagnosis import diagnose_on_host
from moeagent.tools.engines.protocol import ReadySpec
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import members
from moeagent.tools.hosts.protocol import Command
from moeagent.tools.hosts.ssh import SshHost
from moeagent.tools.server.lifecycle import ServerHandle, start_server, stop_server
from moeagent.tools.server.readiness import wait_until_ready

pytestmark = pytest.mark.part("sshd")

SEED = 20261129
READY = ReadySpec(health_paths=("/",), ready_log=None, stages=())
SLOW_START = 'sleep 0.6; exec "$0" -m http.server --bind 127.0.0.1 "$1"'
STEPS = ("launch", "wait", "search", "stop")


class Life:
    """A server on a host behind a wire, and the large log of another one."""

    def __init__(self, folder: Path, run: str) -> None:
        self.folder, self.run, self.port = folder, run, free_port()
        self.sshd = Sshd(folder / "sshd").start()
        self.wire = Wire(self.sshd.port)
        known_hosts = self.wire.known_hosts(self.sshd, folder / "known_hosts")
        settings = self.sshd.settings(known_hosts=(known_hosts,), keepalive_s=0.2, dead_after_s=0.5)
        self.host = SshHost(f"127.0.0.1:{self.wire.port}", settings)
        self.log = folder / "large.log"
        self.cause = write_log(self.log, 4 << 20)
        self.handle: ServerHandle | None = None

    def close(self) -> None:
        self.host.close()
        self.wire.close()
        self.sshd.stop()

    def step(self, name: str) -> None:
        """One step; it checks its own outcome."""
        if name == "launch":
            command = Command(("sh", "-c", SLOW_START, sys.executable, str(self.port)))
            place = f"{self.folder}/L1"
            self.handle = start_server(
                self.host, command, run=self.run, launch="L1", folder=place, port=self.port
            )
            return
        assert self.handle is not None
        if name == "wait":
            report = wait_until_ready(self.host, self.handle, READY, limit_s=60, poll_s=0.05)
            assert report.outcome == "ready"
        elif name == "search":
            found = diagnose_on_host(self.host, str(self.log))
            assert (found.failure_class, found.line_no) == ("oom.cuda.serve", self.cause)
        else:
            assert stop_server(self.host, self.handle, grace_s=10).clean

    def cut(self, how: str, down_s: float) -> None:
        """Break the connection and bring the host back."""
        if how == "killed":
            self.sshd.stop()
            time.sleep(down_s)
            self.sshd.start()
        else:
            self.wire.black_hole()
            time.sleep(down_s)
            self.wire.renew()


@pytest.fixture
def life(run: str, tmp_path: Path) -> Iterator[Callable[[int], Life]]:
    made: list[Life] = []

    def make(number: int) -> Life:
        (tmp_path / str(number)).mkdir()
        made.append(Life(tmp_path / str(number), f"{run}-{number}"))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.timeout(1800)
def test_each_step_survives_a_cut_at_a_random_moment(full: bool, life: Callable[[int], Life]) -> None:
    chance = random.Random(SEED)
    tried = 40 if full else 8
    for number in range(tried):
        hit, how = STEPS[number % len(STEPS)], ("killed", "silent")[number // len(STEPS) % 2]
        box = life(number)
        box.host.run(Command(("true",), repeatable=True), timeout_s=30)
        for name in STEPS:
            moment = (chance.uniform(0.0, 0.3), how, chance.uniform(0.0, 0.5))
            cutter = threading.Timer(moment[0], box.cut, moment[1:])
            if name == hit:
                cutter.start()
            box.step(name)
            if name == hit:
                cutter.join()
        assert box.host.run(Command(("true",), repeatable=True), timeout_s=30).ok
        assert box.host.breaks, f"the cut during {hit} was not noticed ({how}, {moment})"
        assert box.handle is not None
        assert not members(LocalHost(), box.handle.process)
        assert not name_of(box.handle.process.pid)
        box.close()
    print(f"\na server's life cut at {tried} random moments: {tried} recoveries")


def test_a_host_that_answers_slowly(life: Callable[[int], Life]) -> None:
    """A tenth of a second for each piece each way: more waiting, the same outcome, and no break."""
    box = life(0)
    box.host.run(Command(("true",)), timeout_s=30)
    box.wire.delay_s = 0.1
    for name in STEPS:
        box.step(name)
    assert box.host.breaks == 0
