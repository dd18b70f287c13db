"""Keeps the connections of one process busy: closed loop, or at the times of a schedule."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import time
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from moeagent.tools.load.generator.calls import tls_context
from moeagent.tools.load.generator.connection import Connection, CumulativeConnection
from moeagent.tools.load.generator.request import Job, Request, clock
from moeagent.tools.load.generator.sockets import AVAILABLE, NAP_S, PlainSockets

TICK_NS = 10_000_000
WATCH_TICKS = 40
"""Progress and deadlines are looked at this rarely: each look delays the tokens of its moment by 0.3 ms."""
BUSY_EVENTS_S = 15_000
"""Above that many events per second reads are gathered: a wake-up is the largest part of a token's cost."""
LOOKED_AT_PER_TICK = 64
"""Requests looked at in one tick, late or ended: all at once would delay tokens by a millisecond."""
HELD_BYTES = 256 << 20
"""Bytes of finished answers kept in memory before they are moved to a file when the loop is idle."""


class Driver:
    """Drives the connections of one process through phases of requests."""

    def __init__(self, job: Job, slots: int, report: Callable[[int, int], None]) -> None:
        self.job, self.slots, self.report = job, slots, report
        parts = urlsplit(job["url"])
        self.host, self.tls = parts.hostname or "", tls_context(job) if parts.scheme == "https" else None
        self.port = parts.port or (443 if self.tls else 80)
        self.sockets = PlainSockets() if AVAILABLE and not self.tls else None
        self.make = CumulativeConnection if job.get("cumulative") else Connection
        self.pending: deque[Request] = deque()
        self.idle: list[Connection] = []
        self.flying: dict[Request, Connection | None] = {}
        self.over: list[Request] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.lags: list[int] = []
        self.stopped = ""
        self.failures = self.coalesced_cut = self.held = self.past_events = self._counted = 0
        self._suspects: list[tuple[Request, Connection | None]] = []
        self.spill = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the driver
        self.deadline = clock() + int(job["deadline_s"] * 1e9)
        self.done: asyncio.Event | None = None

    async def connect(self, slot: int) -> Connection:
        """A new connection; OSError, ssl.SSLError or asyncio.TimeoutError when it cannot be had."""
        connection, patience = self.make(self, slot), self.job["timeouts"]["connect"]
        if self.sockets is not None:
            await asyncio.wait_for(self.sockets.connect(self.host, self.port, connection), patience)
            return connection
        name = self.host if self.tls else None
        opening = asyncio.get_running_loop().create_connection(
            lambda: connection, self.host, self.port, ssl=self.tls, server_hostname=name
        )
        await asyncio.wait_for(opening, patience)
        return connection

    async def open_all(self) -> None:
        """Open every slot's connection, a few at a time so that the server's backlog is not overrun."""
        gate = asyncio.Semaphore(64)

        async def one(slot: int) -> None:
            async with gate:
                self.idle.append(await self.connect(slot))

        if self.job["keep_alive"]:
            await asyncio.gather(*(one(slot) for slot in range(self.slots)))
        else:
            first = await self.connect(0)
            first.abandon()
            self.idle = [self.make(self, slot) for slot in range(self.slots)]

    async def phase(self, requests: list[Request], until_ns: int = 0) -> list[Request]:
        """Send all requests (closed loop, or at their due times) and return them once each has ended."""
        self.done, self.over, self.stopped, self.failures, self.lags = asyncio.Event(), [], "", 0, []
        self.until, self.total, self.started = until_ns, len(requests), clock()
        self.pending = deque(requests)
        self._seen, self.past_events, self._counted = (clock(), 0), 0, 0
        self._gather(False)
        self._tick(clock())
        if requests and requests[0].due:
            self._release()
        else:
            for connection in self._take_idle():
                self._next(connection)
        self._end_if_done()
        await self.done.wait()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return self.over

    def _take_idle(self) -> list[Connection]:
        taken, self.idle = self.idle, []
        return taken

    def _release(self) -> None:
        now = clock()
        while self.pending and self.pending[0].due <= now and not self.stopped:
            if not self.idle and len(self.flying) >= self.job["max_in_flight"]:
                break
            request = self.pending.popleft()
            self.start(self.idle.pop() if self.idle else self.make(self, len(self.flying)), request)
        if self.pending and not self.stopped:
            wait = (self.pending[0].due - now) / 1e9
            loop = asyncio.get_running_loop()
            # Loop timers are a millisecond coarse: the last one is spent turning.
            handle = loop.call_soon if wait < 0.0015 and wait > 0 else None
            handle(self._release) if handle else loop.call_later(max(wait - 0.001, 0.001), self._release)
        else:
            self._end_if_done()

    def _next(self, connection: Connection) -> None:
        if not self.pending or self.stopped or self.pending[0].due or (self.until and clock() >= self.until):
            self.idle.append(connection)
            self._end_if_done()
            return
        self.start(connection, self.pending.popleft())

    def start(self, connection: Connection, request: Request) -> None:
        """Send now, or reopen the connection first."""
        if connection.usable:
            self.flying[request] = connection
            connection.send(request)
            return
        self.flying[request] = None
        task = asyncio.get_running_loop().create_task(self._reopen(connection.slot, request))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _reopen(self, slot: int, request: Request) -> None:
        request.sent = clock()
        try:
            connection = await self.connect(slot)
        except (OSError, asyncio.TimeoutError) as error:  # noqa: UP041 - another class before Python 3.11
            if request not in self.flying:
                return
            kind, detail = connect_failure(error)
            request.fail(kind, detail)
            request.end = clock()
            if not isinstance(error, asyncio.TimeoutError):
                self.stop(f"the server no longer takes connections ({kind}: {detail})")
            self._next_after(self.make(self, slot), request)
            return
        if request not in self.flying:
            connection.abandon()
            return
        self.flying[request] = connection
        connection.send(request)

    def finished(self, connection: Connection, request: Request) -> None:
        """A connection is through with its request."""
        if not self.job["keep_alive"] and connection.transport is not None:
            connection.transport.close()
        self._next_after(connection, request)

    def _next_after(self, connection: Connection, request: Request) -> None:
        self.flying.pop(request, None)
        self.over.append(request)
        self.past_events += len(request.stamps)
        if request.failure or request.status != 200 or ends_in_error(request):
            self._count_failure()
        self._next(connection)

    def _settle(self, request: Request) -> None:
        self.flying.pop(request, None)
        self.over.append(request)
        self._end_if_done()

    def _count_failure(self) -> None:
        self.failures += 1
        limit = self.job["stop"].get("max_failed")
        if limit is not None and self.failures > limit:
            self.stop(f"more than {limit} requests failed")

    def stop(self, why: str) -> None:
        """Send nothing more; what is in flight goes on."""
        self.stopped = self.stopped or why

    def _end_if_done(self) -> None:
        out_of_time = bool(self.until) and clock() >= self.until
        if self.done is not None and not self.flying and (not self.pending or self.stopped or out_of_time):
            self.done.set()

    def _gather(self, busy: bool) -> None:
        # In an open loop the sends have times to keep, and the event loop the turns.
        self._busy, closed = busy, not self.job.get("arrivals")
        if self.sockets is not None and closed:
            self.sockets.pouring = busy
        elif busy:
            self._nap()

    def _nap(self) -> None:
        assert self.done is not None
        if self._busy and not self.done.is_set():
            time.sleep(NAP_S)
            asyncio.get_running_loop().call_soon(self._nap)

    def _tick(self, expected: int) -> None:
        assert self.done is not None
        if self.done.is_set():
            return
        now = clock()
        self.lags.append(max(0, now - expected))
        if len(self.lags) % WATCH_TICKS == 0:
            self._watch(now)
        self._cut_late(now)
        if now - expected < 1_000_000:
            self._count_held()
            if self.held > HELD_BYTES:
                self._spill_one()
        asyncio.get_running_loop().call_later(TICK_NS / 1e9, self._tick, clock() + TICK_NS)

    def _watch(self, now: int) -> None:
        events = self.past_events + sum(len(r.stamps) for r in self.flying)
        self.report(len(self.over), events)
        self._pace(now, events)
        stop, elapsed = self.job["stop"], (now - self.started) / 1e9
        floor = stop.get("below_events_s")
        if floor and elapsed > stop.get("after_s", 0) and events / elapsed < floor:
            self.stop(
                f"{events / elapsed:.0f} tokens/s after {elapsed:.0f} s is below {floor:.0f}: answer clear"
            )
            self._cut_all("stopped", self.stopped)
        if now > self.deadline:
            self.stop("deadline of the rung")
            self._cut_all("timeout", "deadline of the rung")
        if len(self.lags) % (2 * WATCH_TICKS) == 0:
            self._suspects = list(self.flying.items())

    def _pace(self, now: int, events: int) -> None:
        before, seen = self._seen
        self._seen = (now, events)
        busy = (events - seen) * 1e9 > BUSY_EVENTS_S * (now - before)
        if busy is not self._busy:
            self._gather(busy)

    def _cut_late(self, now: int) -> None:
        looked_at, self._suspects = self._suspects[:LOOKED_AT_PER_TICK], self._suspects[LOOKED_AT_PER_TICK:]
        first, stall = self.job["timeouts"]["first"] * 1e9, self.job["timeouts"]["stall"] * 1e9
        for request, connection in looked_at:
            if self.flying.get(request) is not connection:
                continue
            since = request.stamps[-1] if request.stamps else request.sent
            limit = stall if request.body_at and len(request.stamps) > 1 else first
            if connection is not None and now - since > limit:
                request.fail("timeout", f"no byte for {limit / 1e9:.0f} s")
                connection.abandon()

    def _cut_all(self, kind: str, detail: str) -> None:
        for request, connection in list(self.flying.items()):
            request.fail(kind, detail)
            if connection is not None:
                connection.abandon()
            else:
                request.end = clock()
                self._settle(request)

    def _count_held(self) -> None:
        # Not when a request ends: its old chunks have left the processor's cache, and the next request waits.
        for request in self.over[self._counted : self._counted + LOOKED_AT_PER_TICK]:
            self.held += sum(map(len, request.chunks))
            self._counted += 1

    def _spill_one(self) -> None:
        request = next((r for r in self.over if r.chunks and r.spilled is None), None)
        if request is None:
            return
        at = self.spill.tell()
        self.spill.write(b"".join(request.chunks))
        request.spilled = (at, [len(c) for c in request.chunks])
        self.held -= self.spill.tell() - at
        request.chunks = []

    def restore(self, request: Request) -> None:
        """Bring back the bytes of an answer that was moved to the file."""
        if request.spilled is not None:
            self.spill.seek(request.spilled[0])
            request.chunks = [self.spill.read(n) for n in request.spilled[1]]


def ends_in_error(request: Request) -> bool:
    """A first look at an answer's end, for the stop rule only: the whole answer is judged after the run."""
    tail = b"".join(request.chunks[-3:])
    return b'{"error"' in tail or b'"object":"error"' in tail


def connect_failure(error: BaseException) -> tuple[str, str]:
    """Kind and text of a connection that could not be had."""
    if isinstance(error, ssl.SSLError):
        return "tls", str(error)
    if isinstance(error, asyncio.TimeoutError):
        return "connect", "no connection within the time-out"
    return "connect", str(error) or repr(error)
