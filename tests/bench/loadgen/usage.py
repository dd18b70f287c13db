"""CPU seconds of a process and all its descendants over time, read from /proc by a sampler thread."""

import bisect
import os
import threading
import time
from pathlib import Path

PERIOD_S = 0.1
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class CpuSampler:
    """Samples (monotonic ns, CPU s) of a process tree until it is stopped."""

    def __init__(self, pid: int) -> None:
        self._pid, self._seen = pid, dict[int, float]()
        self.samples: list[tuple[int, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(PERIOD_S):
            for pid in tree(self._pid):
                seconds = cpu_seconds(pid)
                if seconds is not None:
                    self._seen[pid] = seconds
            self.samples.append((time.perf_counter_ns(), sum(self._seen.values())))

    def stop(self) -> None:
        """End sampling."""
        self._over.set()
        self._thread.join()

    def between(self, start_ns: int, end_ns: int) -> float:
        """CPU seconds spent between two instants, interpolated between the samples."""
        return self._at(end_ns) - self._at(start_ns)

    def _at(self, instant: int) -> float:
        position = bisect.bisect_left(self.samples, (instant, 0.0))
        if position == 0 or position == len(self.samples):
            return self.samples[min(position, len(self.samples) - 1)][1] if self.samples else 0.0
        (t0, c0), (t1, c1) = self.samples[position - 1], self.samples[position]
        return c0 + (c1 - c0) * (instant - t0) / (t1 - t0)


def tree(pid: int) -> list[int]:
    """The process and its descendants."""
    found, todo = [], [pid]
    while todo:
        current = todo.pop()
        found.append(current)
        for task in Path(f"/proc/{current}/task").glob("*/children"):
            try:
                todo += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def cpu_seconds(pid: int) -> float | None:
    """User and system seconds of one process, by the scheduler's own fine clock; None when it is gone."""
    try:
        threads = [int(p.read_text().split()[0]) for p in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except OSError:
        return None
    return sum(threads) / 1e9 if threads else None
