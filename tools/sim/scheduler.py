"""Continuous batching, one step at a time: admission, memory and speed of the closed form in detail."""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from moeagent.tools.sim.machines import Instance

LIMIT_FUZZ = 0.04
"""Relative spread, between launches, of the batch at which memory runs out."""
RATIO_START, RATIO_FLOOR, RATIO_STEPS = 0.7, 0.14, 600
"""SGLang's estimate of the part of its allowance that a request will use: start, final share, steps."""
RETRACT_STEPS = 20
"""Decode steps that a retraction makes room for."""
GROWTH_STEPS = (6, 14)
"""Steps at a batch that does not fit until an allocation fails: buffers grow when they are used."""
SLOW_WEIGHT = 0.98
"""Memory of the slow noise from one step to the next."""


@dataclass(eq=False)
class Request:
    """One request in the scheduler's hands."""

    prompt_tokens: int
    cached_tokens: int
    max_tokens: int
    produced: int = 0
    prefilled: int = 0
    """Tokens of the context computed since it last joined."""
    credit: float = 0.0
    """Fraction of a token left from speculative steps."""

    @property
    def context(self) -> int:
        """Tokens that it holds in the cache."""
        return self.prompt_tokens + self.produced


@dataclass
class Step:
    """One forward pass: how long it takes, and which tokens it yields."""

    kind: Literal["prefill", "decode"]
    duration: float
    yields: list[tuple[Request, int]] = field(default_factory=list)
    finished: list[Request] = field(default_factory=list)
    new_sequences: int = 0
    new_tokens: int = 0
    cached_tokens: int = 0
    retracted: int = 0


class OutOfMemoryError(Exception):
    """The running batch does not fit: the server dies."""

    def __init__(self, running: int) -> None:
        super().__init__(running)
        self.running = running


class Scheduler:
    """The state of one server: waiting and running requests."""

    def __init__(self, instance: Instance, rng: random.Random) -> None:
        self._instance, self._rng = instance, rng
        settings, plan, hidden = instance.settings, instance.plan, instance.world.hidden
        groups = settings.groups
        self._groups = groups
        self._pool = plan.kv_tokens * groups
        self._max_running = plan.max_running * groups
        chunk = int(settings.args["chunked_prefill_size"])
        self._chunk = (chunk if chunk > 0 else int(settings.args["max_prefill_tokens"])) * groups
        self._ratio = min(RATIO_START * float(settings.args["schedule_conservativeness"]), 1.0)
        self._ratio_floor = self._ratio * RATIO_FLOOR
        self._ratio_decay = (self._ratio - self._ratio_floor) / RATIO_STEPS
        self._launch_factor = max(rng.gauss(1.0, hidden.noise_between), 0.7)
        self._slow = 0.0
        breaks = plan.breaks_at()
        self._breaks_at = (
            None if breaks is None else max(int(breaks * groups * rng.gauss(1.0, LIMIT_FUZZ)), 2)
        )
        self._steps_left = rng.randint(*GROWTH_STEPS)
        self._mixed = 1.0
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    @property
    def tokens(self) -> int:
        """Cached tokens of the running requests."""
        return sum(request.context for request in self.running)

    @property
    def usage(self) -> float:
        """Share of the pool in use."""
        return self.tokens / max(self._pool, 1)

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.waiting.append(request)

    def cancel(self, request: Request) -> None:
        """Forget a request whose client has gone."""
        if request in self.running:
            self.running.remove(request)
        elif request in self.waiting:
            self.waiting.remove(request)

    def step(self) -> Step | None:
        """The next forward pass, already applied; None when idle. Raises OutOfMemoryError."""
        batch = self._admit()
        if batch:
            return self._prefill(batch)
        return self._decode() if self.running else None

    def _admit(self) -> list[tuple[Request, int]]:
        """Waiting requests that join now, each with the new tokens of this pass."""
        room = self._chunk
        free = self._pool - self.tokens
        free -= sum(int((r.max_tokens - r.produced) * self._ratio) for r in self.running)
        batch: list[tuple[Request, int]] = []
        while self.waiting and room > 0 and len(self.running) + len(batch) < self._max_running:
            request = self.waiting[0]
            left = max(request.context - request.cached_tokens - request.prefilled, 1)
            needed = left + int((request.max_tokens - request.produced) * self._ratio)
            if needed > free and (self.running or batch):
                break
            take = min(left, room)
            batch.append((request, take))
            room -= take
            free -= needed
            if take < left:
                break
            self.waiting.popleft()
        return batch

    def _prefill(self, batch: list[tuple[Request, int]]) -> Step:
        tokens = sum(take for _, take in batch)
        step = Step("prefill", self._noisy(self._instance.speed.prefill(tokens)))
        step.new_tokens, step.cached_tokens = tokens, sum(r.cached_tokens for r, _ in batch)
        for request, take in batch:
            request.prefilled += take
            if self.waiting and self.waiting[0] is request:
                continue
            step.new_sequences += 1
            self.running.append(request)
            self._produce(step, request, 1)
        self._mixed = 1.0 + self._instance.world.hidden.interference * min(len(self.running) / 64.0, 1.0)
        self._leave(step)
        return step

    def _decode(self) -> Step:
        self._check_memory()
        retracted = self._retract()
        batch = len(self.running)
        speed = self._instance.speed
        step = Step("decode", self._noisy(speed.decode_step(batch, self.tokens / batch) * self._mixed))
        self._mixed = self._mixed if self.waiting else 1.0 + (self._mixed - 1.0) * 0.9
        step.retracted = retracted
        gain = speed.tokens_per_step()
        for request in self.running:
            request.credit += gain
            tokens = int(request.credit)
            request.credit -= tokens
            self._produce(step, request, tokens)
        self._leave(step)
        return step

    def _produce(self, step: Step, request: Request, tokens: int) -> None:
        tokens = min(tokens, request.max_tokens - request.produced)
        if tokens > 0:
            request.produced += tokens
            step.yields.append((request, tokens))

    def _leave(self, step: Step) -> None:
        done = [request for request in self.running if request.produced >= request.max_tokens]
        if done:
            step.finished = done
            self.running = [request for request in self.running if request.produced < request.max_tokens]

    def _retract(self) -> int:
        """Push requests back while the next tokens do not fit; what they cached is computed again later."""
        if self.tokens + len(self.running) <= self._pool:
            self._ratio = max(self._ratio - self._ratio_decay, self._ratio_floor)
            return 0
        retracted = 0
        while len(self.running) > 1 and self.tokens + RETRACT_STEPS * len(self.running) > self._pool:
            request = self.running.pop()
            request.prefilled = request.cached_tokens = 0
            self.waiting.appendleft(request)
            retracted += 1
        allowed = sum(request.max_tokens for request in self.running)
        decoded = sum(request.produced for request in self.running)
        self._ratio = min((decoded + RETRACT_STEPS * len(self.running)) / max(allowed, 1), 1.0)
        return retracted

    def _check_memory(self) -> None:
        if self._breaks_at is None or len(self.running) < self._breaks_at:
            return
        self._steps_left -= 1
        if self._steps_left < 0:
            raise OutOfMemoryError(len(self.running))

    def _noisy(self, duration: float) -> float:
        within = self._instance.world.hidden.noise_within
        innovation = (1.0 - SLOW_WEIGHT**2) ** 0.5
        self._slow = SLOW_WEIGHT * self._slow + innovation * self._rng.gauss(0.0, within)
        return duration * self._launch_factor * max(1.0 + self._slow, 0.5)
