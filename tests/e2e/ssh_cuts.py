"""A campaign over a real sshd that is cut at chosen moments: the server killed, or the line gone silent."""

import os
import random
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from e2e.command import start, tagged_processes, tape_lines, wait_for
from e2e.llama_box import LLAMA_BOX
from parts.sshd import Sshd
from parts.wire import Wire

How = Literal["killed", "silent", "rebooted"]

SETTINGS = (
    LLAMA_BOX
    + """[baseline]
launches = 1
flags = {{ "-np" = 2, "-c" = 4096, "-t" = 1 }}
[workload]
input_len = 16
output_len = 16
ladder = [1, 4]
prompts_per_slot = 2.0
min_prompts = 4
[output_check]
batch_sizes = [1]
prompts = 2
max_tokens = 8
[limits]
experiments = 1
launches = 2
[[idea]]
statement = "Four slots serve four streams at once"
flags = {{ "-np" = 4 }}
"""
)
SPAN_S = {"survey": 1.5, "start": 3.0, "calibrate": 0.3, "load": 2.5, "outputs": 0.5, "stop": 1.0}
"""About how long each effect takes here: a cut falls anywhere in that time."""
DOWN_S = 2.0
"""The longest time for which the server is away."""


@dataclass(frozen=True)
class Cut:
    """One break of the connection."""

    kind: str
    """The effect that is under way."""
    nth: int
    """Of this kind on the tape, from 0."""
    after_s: float
    """Since the effect began."""
    how: How
    down_s: float


def drawn(seed: int, runs: int, each: int) -> list[list[Cut]]:
    """For each run its cuts, each in another effect, in the order of the tape."""
    chance = random.Random(seed)
    places = [("start", 0), ("calibrate", 0), ("load", 0), ("load", 1), ("outputs", 0), ("stop", 0)]
    places += [("start", 1), ("load", 2), ("load", 3), ("outputs", 1), ("stop", 1)]
    hands = [sorted(chance.sample(places, each), key=places.index) for _ in range(runs)]
    return [[_cut(chance, kind, nth) for kind, nth in hand] for hand in hands]


def _cut(chance: random.Random, kind: str, nth: int) -> Cut:
    after_s = chance.uniform(0.0, SPAN_S[kind])
    how: How = chance.choice(("killed", "silent"))
    return Cut(kind, nth, round(after_s, 2), how, round(chance.uniform(0.0, DOWN_S), 2))


@dataclass
class Box:
    """A host behind a wire, as the campaign's settings name it."""

    folder: Path
    sshd: Sshd
    wire: Wire

    def cut(self, cut: Cut, run: str) -> None:
        """Break the connection and bring the host back."""
        if cut.how != "silent":
            self.sshd.stop()
            if cut.how == "rebooted":
                self._lose_power(run)
            time.sleep(cut.down_s)
            self.sshd.start()
        else:
            self.wire.black_hole()
            time.sleep(cut.down_s)
            self.wire.renew()

    def _lose_power(self, run: str) -> None:
        """Nothing of the run lives on, and the kernel that comes back says so."""
        for pid in tagged_processes(f"{run}/"):
            with suppress(ProcessLookupError):  # its parent may have taken it along
                os.kill(pid, signal.SIGKILL)
        self.sshd.boot_id = str(uuid.uuid4())


@contextmanager
def box(folder: Path, model: Path, load_from: str) -> Iterator[Box]:
    """A running sshd behind a wire, and settings for a campaign on it."""
    sshd = Sshd(folder / "sshd").start()
    wire = Wire(sshd.port)
    known_hosts = wire.known_hosts(sshd, folder / "known_hosts")
    (folder / "ssh_config").write_text(
        f"Host box\n HostName 127.0.0.1\n Port {wire.port}\n IdentityFile {sshd.user_key}\n"
        f" UserKnownHostsFile {known_hosts}\n ServerAliveInterval 1\n ServerAliveCountMax 2\n"
    )
    text = SETTINGS.format(load_from=load_from, model=model, folder=folder, python=sys.executable)
    (folder / "moeagent.toml").write_text(text)
    try:
        yield Box(folder, sshd, wire)
    finally:
        wire.close()
        sshd.stop()


def under_way(folder: Path, run: str, kind: str, nth: int) -> bool:
    """Whether the n-th effect of a kind has begun."""
    begun = [line for line in tape_lines(folder, run) if line["type"] == "request" and line["kind"] == kind]
    return len(begun) > nth


def disturbed(box: Box, run: str, cuts: list[Cut]) -> tuple[int, str, int]:
    """A run with these cuts: its exit code, what it printed, and how many cuts it reconnected after."""
    recovered = 0
    process = start(box.folder, "run", "--run-id", run)

    def ended() -> bool:
        return process.poll() is not None

    try:
        for cut in cuts:
            wait_for(lambda c=cut: ended() or under_way(box.folder, run, c.kind, c.nth), str(cut), 240.0)
            if ended():
                break
            time.sleep(cut.after_s)
            before = box.wire.accepted
            box.cut(cut, run)
            wait_for(lambda b=before: ended() or box.wire.accepted > b, f"a reconnect after {cut}")
            recovered += box.wire.accepted > before
        printed, _ = process.communicate(timeout=240.0)
    finally:
        process.kill()
        process.wait()
    return process.returncode, printed, recovered
