"""Samples a host's GPUs while a rung is measured: one process on the host, no round trip per sample."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files

from moeagent.memory.errors import HostError
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.protocol import CommandResult, Host
from moeagent.tools.load.gpu_state import queries

PERIOD_MS = 1000
LOOK_S = 0.2
"""How often the process on the host looks whether it is still wanted; in sampling.sh."""
ABSENT = 127
_SPARE_S = 60.0
_END_S = 10.0
"""The process ends within a fifth of a second; a slow connection may take longer."""
_ASK_S = 30.0


@dataclass
class Samples:
    """What the host's nvidia-smi said during one load; empty text when it said nothing."""

    text: str = ""
    ahead_s: float = 0.0
    """Host's clock minus this machine's; known to half a round trip."""


class GpuSampler:
    """The sampling of one host. A host without nvidia-smi is asked once and then left alone."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._absent = False

    @contextmanager
    def during(self, folder: str, *, limit_s: float) -> Generator[Samples]:
        """Sample while the context is open; the samples are there when it has closed.

        folder: an absolute one on the host. What goes wrong with the sampling leaves the samples empty and
        never disturbs the load.
        """
        samples = Samples()
        if self._absent:
            yield samples
            return
        lease = f"{folder}/sampling"
        run = _Run(self._host, lease, limit_s)
        run.start()
        try:
            yield samples
        finally:
            samples.ahead_s = run.stop()
            self._absent = run.result is not None and run.result.exit_code == ABSENT
            samples.text = run.result.text if run.result else ""


class _Run:
    """One process on the host, waited for by a thread."""

    def __init__(self, host: Host, lease: str, limit_s: float) -> None:
        self._host, self._lease, self._limit_s = host, lease, limit_s
        self._thread = threading.Thread(target=self._sample, name="gpu-sampling", daemon=True)
        self.result: CommandResult | None = None

    def start(self) -> None:
        """Begin. The file is there before the process looks for it, and gone before one that comes late."""
        try:
            self._host.put(self._lease, b"")
        except HostError:
            return
        self._thread.start()

    def _sample(self) -> None:
        looks = int((self._limit_s + _SPARE_S) / LOOK_S)
        text = files("moeagent.tools.load").joinpath("sampling.sh").read_text("utf-8")
        argv = ("sh", "-c", text, "moeagent", self._lease, str(PERIOD_MS), str(looks), *queries())
        command = Command(argv, title="sampling the GPUs")
        # A host that says no, and a connection that breaks, leave the power unknown: no result.
        with suppress(HostError):
            self.result = self._host.run(command, timeout_s=self._limit_s + 2 * _SPARE_S)

    def stop(self) -> float:
        """End it; returns how far the host's clock is ahead of ours, 0 when it could not be asked."""
        argv = ("sh", "-c", 'rm -f "$1"; date +%s.%N', "moeagent", self._lease)
        before = time.time()
        try:
            told = self._host.run(Command(argv, repeatable=True), timeout_s=_ASK_S)
        except HostError:
            return 0.0
        middle = (before + time.time()) / 2
        if self._thread.ident is not None:
            self._thread.join(_END_S)
        clock = parse_clock(told.text)
        return 0.0 if clock is None else clock - middle


def parse_clock(text: str) -> float | None:
    """Seconds of `date +%s.%N`; a date that knows no nanoseconds prints whole seconds and a letter."""
    seconds, _, nanos = text.strip().partition(".")
    if not seconds.isdigit():
        return None
    return int(seconds) + (int(nanos) / 1e9 if nanos.isdigit() else 0.5)
