"""Waiting for a server: endpoint, log and process state together decide.

A server is ready when its process lives, its log said so, its health endpoint answers, and the port is held
by that very process: another server on the same port does not count. It hangs when neither its log nor its
stage moves for longer than the stage may be silent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from moeagent.memory.records.base import Record
from moeagent.tools.engines.protocol import ReadySpec
from moeagent.tools.hosts.clock import Clock, SystemClock
from moeagent.tools.hosts.ports import port_holders
from moeagent.tools.hosts.processes import ProcessState, members
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.server.follow import LogFollower, LogReader, StageSeen
from moeagent.tools.server.health import is_healthy
from moeagent.tools.server.lifecycle import ServerHandle, server_state

HEALTH_TIMEOUT_S = 20.0
"""SGLang's /health_generate runs a token through the model, which may wait for a kernel to be compiled."""
_POLL_S = 1.0


class ReadyReport(Record):
    """How a wait ended."""

    outcome: Literal["ready", "died", "hung"]
    after_s: float
    """Since the wait began."""
    exit_code: int | None = None
    stage: str | None = None
    """The last stage that the log showed."""
    stages: tuple[StageSeen, ...] = ()
    why: str = ""
    """For people: what decided, where it is not plain."""
    log_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """What a live view shows."""

    at_s: float
    stage: str | None
    last_line: str
    log_bytes: int


def wait_until_ready(
    host: Host,
    handle: ServerHandle,
    ready: ReadySpec,
    *,
    limit_s: float,
    poll_s: float = _POLL_S,
    on_progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
) -> ReadyReport:
    """Wait until the server is ready, died or hangs; at most about `limit_s`, which counts as a hang.

    Raises RemoteError when the host is lost for longer than its reconnect deadline; the server then goes on
    and the wait may be taken up again with the same handle.
    """
    with host.forward(handle.port) as port:
        return _Wait(host, handle, ready, port, limit_s, clock or SystemClock()).run(poll_s, on_progress)


class _Wait:
    """One wait: what was seen so far, and the verdict."""

    def __init__(
        self, host: Host, handle: ServerHandle, ready: ReadySpec, port: int, limit_s: float, clock: Clock
    ) -> None:
        self._host, self._handle, self._ready = host, handle, ready
        self._port, self._limit_s, self._clock = port, limit_s, clock
        self._log = LogFollower(host, handle.log, LogReader(ready))
        self._began = self._moved = clock.now()
        self._foreign = ""

    def run(self, poll_s: float, on_progress: Callable[[Progress], None] | None) -> ReadyReport:
        while True:
            # The process first: when it is dead, the log that follows is complete.
            state = server_state(self._host, self._handle)
            if self._log.look(self._elapsed()):
                self._moved = self._clock.now()
            if on_progress is not None:
                on_progress(self._progress())
            report = self._verdict(state)
            if report is not None:
                return report
            self._clock.sleep(poll_s)

    def _elapsed(self) -> float:
        return round(self._clock.now() - self._began, 3)

    def _progress(self) -> Progress:
        reader = self._log.reader
        return Progress(self._elapsed(), reader.stage, reader.last_line, self._log.offset)

    def _verdict(self, state: ProcessState) -> ReadyReport | None:
        if not state.alive:
            return self._report("died", state)
        reader = self._log.reader
        log_agrees = reader.ready_line or self._ready.ready_log is None
        if log_agrees and self._serves():
            return self._report("ready", state)
        why = self._out_of_time()
        if not why:
            return None
        if not log_agrees and self._serves():
            return self._report("ready", state, "serves, though its log never showed the line that says so")
        return self._report("hung", state, f"{why}; {self._foreign}" if self._foreign else why)

    def _out_of_time(self) -> str:
        stall_s = self._log.reader.stall_s
        silent_s = self._clock.now() - self._moved
        if stall_s is not None and silent_s > stall_s:
            return (
                f"no new log line for {silent_s:.0f} s, more than the {stall_s:g} s that this stage may take"
            )
        return f"not ready after {self._limit_s:g} s" if self._elapsed() > self._limit_s else ""

    def _serves(self) -> bool:
        """Whether the endpoint answers, and it is our living process that answers."""
        if not is_healthy(self._port, self._ready.health_paths, timeout_s=HEALTH_TIMEOUT_S):
            return False
        holders = port_holders(self._host, self._handle.port)
        ours = set(members(self._host, self._handle.process))
        strangers = [holder for holder in holders if holder.pid not in ours]
        self._foreign = f"port {self._handle.port} is held by {strangers[0]}" if strangers else ""
        answered_by_us = not holders or len(strangers) < len(holders)
        return answered_by_us and server_state(self._host, self._handle).alive

    def _report(
        self, outcome: Literal["ready", "died", "hung"], state: ProcessState, why: str = ""
    ) -> ReadyReport:
        reader = self._log.reader
        return ReadyReport(
            outcome=outcome,
            after_s=self._elapsed(),
            exit_code=state.exit_code,
            stage=reader.stage,
            stages=tuple(reader.stages),
            why=why,
            log_bytes=self._log.offset,
        )
