"""The supervisor's side: forks the workers, gives the common start, collects what they found."""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Callable
from typing import Any

from moeagent.tools.load.generator.request import Answer, Job, clock
from moeagent.tools.load.generator.worker import work


class Crew:
    """The workers of one rung, as the supervisor sees them."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.pids: list[int] = []
        self.inboxes: list[int] = []
        self.outboxes: list[int] = []
        for number in range(job["processes"]):
            self._fork(number)
        self.held = dict.fromkeys(self.outboxes, b"")
        self.latest: dict[int, Answer] = {}
        self.last_progress = clock()

    def _fork(self, number: int) -> None:
        to_child, from_child = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                for fd in (to_child[1], from_child[0], *self.inboxes, *self.outboxes):
                    os.close(fd)
                work(self.job, number, to_child[0], from_child[1])
                status = 0
            finally:
                os._exit(status)
        os.close(to_child[0])
        os.close(from_child[1])
        self.pids.append(pid)
        self.inboxes.append(to_child[1])
        self.outboxes.append(from_child[0])

    def gather(self, key: str, deadline: int, on_progress: Callable[[list[Answer]], None]) -> list[Answer]:
        """Every worker's message with this key (or `refused`); TimeoutError or EOFError when one is lost."""
        found: dict[int, Answer] = {}
        while len(found) < len(self.outboxes):
            waiting = [fd for fd in self.outboxes if fd not in found]
            ready, _, _ = select.select(waiting, [], [], max(0.0, (deadline - clock()) / 1e9))
            if not ready:
                raise TimeoutError(f"no {key} from the load generator's worker in time")
            for fd in ready:
                for message in self._lines(fd):
                    if key in message or "refused" in message:
                        found[fd] = message
                    else:
                        self.latest[fd] = message
            if self.latest and clock() - self.last_progress > 200_000_000:
                self.last_progress = clock()
                on_progress(list(self.latest.values()))
        return list(found.values())

    def _lines(self, fd: int) -> list[Answer]:
        data = os.read(fd, 1 << 20)
        if not data:
            raise EOFError("a worker of the load generator ended before its time")
        *lines, self.held[fd] = (self.held[fd] + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def order(self, **message: Any) -> None:
        """One line to every worker."""
        for fd in self.inboxes:
            os.write(fd, json.dumps(message).encode() + b"\n")

    def dismiss(self) -> None:
        """No worker outlives the supervisor."""
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
