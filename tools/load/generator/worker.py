"""One forked worker: opens, warms up, measures and digests its share of the rung."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import resource
import time
from collections.abc import Iterator
from typing import Any

from moeagent.tools.load.generator.digest import digest_all
from moeagent.tools.load.generator.driver import Driver, connect_failure
from moeagent.tools.load.generator.prompts import make_prompts
from moeagent.tools.load.generator.request import Answer, Job, Request, clock, make_wire

MAX_DURATION_REQUESTS = 200_000


class Worker:
    """One process with its share of the slots and requests; talks to the supervisor over two pipes."""

    def __init__(self, job: Job, number: int, inbox: int, outbox: int) -> None:
        self.job, self.number, self.of = job, number, job["processes"]
        self.inbox, self.outbox = os.fdopen(inbox, "r"), os.fdopen(outbox, "w")
        self.slots = len(range(number, job["concurrency"], self.of))

    def tell(self, message: Answer) -> None:
        """One line to the supervisor."""
        self.outbox.write(json.dumps(message, separators=(",", ":")) + "\n")
        self.outbox.flush()

    def wait_for(self, word: str) -> Answer:
        """The supervisor's next line, which must be the expected one."""
        line = self.inbox.readline()
        if not line:
            raise SystemExit(1)
        message: Answer = json.loads(line)
        if message["do"] != word:
            raise SystemExit(f"expected {word}")
        return message

    def report(self, completed: int, events: int) -> None:
        """Progress to the supervisor."""
        self.tell({"completed": completed, "events": events})

    def requests(self, count: int, offset: int = 0, out: int = 0) -> list[Request]:
        """This worker's requests among `count`, numbered from `offset` (negative: warm-up)."""
        arrivals, made = self.job.get("arrivals"), []
        for index in range(self.number, count, self.of):
            prompts = make_prompts(self.job, offset + index, 1)
            if not prompts:
                break
            prompt, length = prompts[0]
            length = min(length, out) if out else length
            request = Request(offset + index, make_wire(self.job, prompt, length), length)
            if arrivals and offset >= 0:
                request.due = int(arrivals[index] * 1e9)
            made.append(request)
        return made

    async def run(self) -> None:
        """Open, warm up, wait for the common start, measure, digest."""
        driver = Driver(self.job, self.slots, self.report)
        try:
            await driver.open_all()
        except (OSError, asyncio.TimeoutError) as error:  # noqa: UP041 - another class before Python 3.11
            kind, detail = connect_failure(error)
            self.tell({"refused": kind, "detail": detail})
            return
        waves = await self.warm_up(driver)
        measured = self.requests(self.count(waves))
        self.tell({"ready": waves})
        order = self.wait_for("start")
        await self.measure(driver, measured, order["at"])

    def count(self, waves: list[Answer]) -> int:
        """Requests to prepare; for a duration, twice what the short warm-up requests did at their fastest."""
        if not self.job.get("duration_s"):
            return int(self.job["requests"])
        rates = [w["completed"] * self.of / w["s"] for w in waves if w["s"] > 0] or [100.0]
        wanted: int = int(2 * max(rates) * self.job["duration_s"]) + 2 * self.job["concurrency"]
        return min(wanted, MAX_DURATION_REQUESTS, int(self.job.get("requests") or MAX_DURATION_REQUESTS))

    async def warm_up(self, driver: Driver) -> list[Answer]:
        """Waves of short requests at the rung's own concurrency until two take equally long."""
        plan, waves = self.job.get("warmup"), []  # type: Any, list[Answer]
        if not plan:
            return waves
        began, offset = clock(), -1_000_000
        while len(waves) < plan["max_waves"] and clock() - began < plan["max_s"] * 1e9:
            requests = self.requests(self.job["concurrency"], offset, plan["out"])
            start = clock()
            over = await driver.phase(requests)
            failed = sum(1 for r in over if r.failure or r.status != 200)
            waves.append({"s": (clock() - start) / 1e9, "completed": len(over) - failed, "failed": failed})
            offset += self.job["concurrency"]
            waves[-1]["steady"] = settled(waves, plan)
            if driver.stopped or failed == len(over) or waves[-1]["steady"]:
                break
        return waves

    async def measure(self, driver: Driver, requests: list[Request], start: int) -> None:
        """The rung itself."""
        for request in requests:
            request.due += start if self.job.get("arrivals") else 0
        gc.collect()
        gc.freeze()
        gc.disable()
        await asyncio.sleep(max(0.0, (start - clock()) / 1e9))
        until = start + int(self.job["duration_s"] * 1e9) if self.job.get("duration_s") else 0
        cpu, waited, began = time.process_time(), run_queue_wait(), clock()
        with ahead_of_others(self.job["realtime"]):
            over = await driver.phase(requests, until)
        wall, cpu = (clock() - began) / 1e9, time.process_time() - cpu
        lags = sorted(driver.lags)
        health = {
            "cpu_s": cpu, "wall_s": wall, "lag_ms": lags[int(len(lags) * 0.99)] / 1e6,
            "lag_max_ms": lags[-1] / 1e6, "run_queue_s": run_queue_wait() - waited,
            "crowded_cut": driver.coalesced_cut, "loop": type(asyncio.get_running_loop()).__module__,
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }  # fmt: skip
        unsent = len(requests) - len(over) if not until else 0
        answers = digest_all(driver, over, start)
        self.tell({"answers": answers, "health": health, "unsent": unsent, "stopped": driver.stopped})


def settled(waves: list[Answer], plan: dict[str, Any]) -> bool:
    """True when the last two waves took equally long."""
    if len(waves) < max(2, plan["min_waves"]):
        return bool(plan["min_waves"] < 2)
    last, before = waves[-1]["s"], waves[-2]["s"]
    return bool(abs(last - before) <= plan["tolerance"] * before)


def run_queue_wait() -> float:
    """Seconds that this process was runnable but not running, as far as the kernel says."""
    try:
        with open("/proc/self/schedstat") as file:  # noqa: PTH123 - one small read in a hot file
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


@contextlib.contextmanager
def ahead_of_others(wanted: bool) -> Iterator[None]:
    """Run in the mildest real-time class meanwhile, where this user may: a wake-up is a time stamp here.

    The kernel keeps a share of every core from real-time work, so not even a fault here could take one over.
    """
    if not wanted:
        yield
        return
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def work(job: Job, number: int, inbox: int, outbox: int) -> None:
    """A forked worker's whole life."""
    try:
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    except ImportError:
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(Worker(job, number, inbox, outbox).run())
