"""The serving half of the process face: the scheduler paced by the clock, and the routes of the API."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from moeagent.tools.sim import logs
from moeagent.tools.sim.api import begin, emit, finish
from moeagent.tools.sim.catalogue import VERSION
from moeagent.tools.sim.generation import BadRequestError, Generation, Limits, parse_generation
from moeagent.tools.sim.hosting import Box
from moeagent.tools.sim.http import Connection, HttpRequest
from moeagent.tools.sim.logs import LogLine
from moeagent.tools.sim.scheduler import OutOfMemoryError, Request, Scheduler, Step
from moeagent.tools.sim.text import PrefixCache

GENERATORS = ("/v1/completions", "/v1/chat/completions", "/generate")
LATE_S = 0.25
"""A loop that lags by more than this starts its clock anew instead of catching up."""


class Server:
    """One server: what is in flight, and what it answers."""

    def __init__(self, box: Box, say: Callable[[Sequence[LogLine]], None], *, ready_at: float) -> None:
        self._box, self._say = box, say
        settings = box.instance.settings
        self._args = settings.args
        self._scheduler = Scheduler(box.instance, random.Random(f"{box.world.seed}-{box.nonce}-serving"))
        self._cache = PrefixCache(enabled=not self._args["disable_radix_cache"])
        self._generations: dict[Request, Generation] = {}
        self._connections: set[Connection] = set()
        self._wake = asyncio.Event()
        self._ready = False
        self._decodes = 0
        self._tokens_since = 0
        self._totals = {"prompt": 0, "generation": 0, "requests": 0}
        self._rate = self._window_start = 0.0
        self.now = ready_at
        """Simulated seconds since the start of the process."""
        context = int(self._args["context_length"] or box.world.model.context)
        garbage = settings.has_any(box.world.hidden.garbage)
        name = str(self._args["served_model_name"] or self._args["model_path"])
        interval = max(int(self._args["stream_interval"]), 1)
        self._limits = Limits(name, context, interval, garbage, self._cache.hit)
        self._access_log = (self._args["log_level_http"] or self._args["log_level"]) not in (
            "error",
            "warning",
            "critical",
        )

    def connection(self) -> Connection:
        """A protocol for a new client."""
        return Connection(self._handle, self._connections)

    def mark_ready(self) -> None:
        """Answer health checks with 200 from now on."""
        self._ready = True

    async def serve(self) -> tuple[float, int]:
        """Serve until memory runs out; returns (simulated time, running requests) of the death."""
        loop = asyncio.get_running_loop()
        scale = self._box.config.serving_scale
        clock = loop.time()
        self._window_start = self.now
        while True:
            try:
                step = self._scheduler.step()
            except OutOfMemoryError as error:
                return self.now, error.running
            if step is None:
                self._wake.clear()
                await self._wake.wait()
                self.now += max(loop.time() - clock, 0.0) * scale
                clock = loop.time()
                continue
            clock += step.duration / scale
            self.now += step.duration
            if loop.time() - clock > LATE_S:
                clock = loop.time()
            await asyncio.sleep(max(clock - loop.time(), 0.0))
            self._deliver(step)

    def _deliver(self, step: Step) -> None:
        for request, tokens in step.yields:
            generation = self._generations.get(request)
            if generation is not None:
                emit(generation, tokens)
                self._tokens_since += tokens
                self._totals["generation"] += tokens
        self._log_step(step)
        for request in step.finished:
            generation = self._generations.pop(request, None)
            if generation is not None:
                finish(generation)

    def _log_step(self, step: Step) -> None:
        scheduler, lines = self._scheduler, []
        if step.retracted:
            lines.append(
                f"KV cache pool is full. Retract requests. #retracted_reqs: {step.retracted}, "
                "#new_token_ratio: 0.1474 -> 0.8045"
            )
        if step.kind == "prefill":
            rate = step.new_tokens / step.duration
            lines.append(
                logs.prefill_batch(
                    sequences=step.new_sequences, new=step.new_tokens, cached=step.cached_tokens,
                    usage=scheduler.usage,
                    running=len(scheduler.running), queued=len(scheduler.waiting), rate=rate,
                )
            )  # fmt: skip
        else:
            self._decodes += 1
            if self._decodes % max(int(self._args["decode_log_interval"]), 1) == 0:
                lines.append(self._decode_line())
        tag = logs.rank_tag(0, expert_parallel=self._box.instance.settings.expert_parallel)
        if lines:
            self._say([LogLine(self.now, line, tag) for line in lines])

    def _decode_line(self) -> str:
        scheduler, settings = self._scheduler, self._box.instance.settings
        span = max(self.now - self._window_start, 1e-6)
        self._rate = self._tokens_since / span
        self._window_start, self._tokens_since = self.now, 0
        running = len(scheduler.running)
        accept = self._box.instance.speed.tokens_per_step() if settings.speculative else None
        return logs.decode_batch(
            running=running, tokens=scheduler.tokens, usage=scheduler.usage,
            graph=running <= settings.graph_bs,
            rate=self._rate, queued=len(scheduler.waiting), accept=accept,
        )  # fmt: skip

    # routes

    def _handle(self, http: HttpRequest) -> None:
        if self._access_log:
            line = f'INFO:     {http.peer[0]}:{http.peer[1]} - "{http.method} {http.path} HTTP/1.1" 200 OK'
            self._say([LogLine(self.now, line, "")])
        if http.method == "POST" and http.path in GENERATORS:
            self._generate(http)
            return
        route = self._routes().get(http.path)
        if route is None:
            http.answer_json(404, {"detail": "Not Found"})
        elif http.method not in route[0]:
            http.answer_json(405, {"detail": "Method Not Allowed"})
        else:
            route[1](http)

    def _routes(self) -> dict[str, tuple[tuple[str, ...], Callable[[HttpRequest], None]]]:
        routes: dict[str, tuple[tuple[str, ...], Callable[[HttpRequest], None]]] = {
            "/health": (("GET",), self._health), "/health_generate": (("GET",), self._health),
            "/ping": (("GET",), self._health), "/server_info": (("GET",), self._info),
            "/get_server_info": (("GET",), self._info), "/model_info": (("GET",), self._model_info),
            "/get_model_info": (("GET",), self._model_info), "/v1/models": (("GET",), self._models),
            "/flush_cache": (("GET", "POST"), self._flush),
        }  # fmt: skip
        return routes | ({"/metrics": (("GET",), self._metrics)} if self._args["enable_metrics"] else {})

    def _generate(self, http: HttpRequest) -> None:
        try:
            generation = parse_generation(http, self._limits)
        except BadRequestError as error:
            body = {
                "object": "error",
                "message": str(error),
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
            http.answer_json(400, body)
            return
        request = generation.request
        self._generations[request] = generation
        begin(generation)
        if generation.stream is not None:
            generation.stream.on_abort = lambda: self._abort(request)
        self._totals["prompt"] += request.prompt_tokens
        self._totals["requests"] += 1
        self._scheduler.add(request)
        self._wake.set()

    def _abort(self, request: Request) -> None:
        if self._generations.pop(request, None) is not None:
            self._scheduler.cancel(request)

    def _health(self, http: HttpRequest) -> None:
        http.answer(200 if self._ready else 503, b"", "text/plain")

    def _info(self, http: HttpRequest) -> None:
        plan = self._box.instance.plan
        state = {
            "last_gen_throughput": round(self._rate, 2),
            "memory_usage": {
                "weight": round(plan.weights, 2), "kvcache": round(plan.pool, 2),
                "token_capacity": plan.kv_tokens,
                "graph": round(plan.graphs, 2),
            },
            "effective_max_running_requests_per_dp": plan.max_running,
        }  # fmt: skip
        body = {**self._args, "status": "ready" if self._ready else "starting", "simulated": True,
        "version": VERSION,
                "max_total_num_tokens": plan.kv_tokens, "internal_states": [state]}  # fmt: skip
        http.answer(200, json.dumps(body, default=str).encode())

    def _model_info(self, http: HttpRequest) -> None:
        body = {"model_path": self._args["model_path"], "tokenizer_path": self._args["tokenizer_path"],
                "is_generation": True, "weight_version": "default", "simulated": True}  # fmt: skip
        http.answer_json(200, body)

    def _models(self, http: HttpRequest) -> None:
        entry = {"id": self._limits.model, "object": "model", "created": int(time.time()),
        "owned_by": "sglang",
                 "root": self._limits.model, "max_model_len": self._limits.context}  # fmt: skip
        http.answer_json(200, {"object": "list", "data": [entry]})

    def _flush(self, http: HttpRequest) -> None:
        if self._scheduler.running or self._scheduler.waiting:
            http.answer(400, b"Flush cache failed.\n", "text/plain")
            return
        self._cache.flush()
        text = (
            b"Cache flushed.\nPlease check backend logs for more details. "
            b"(When there are running or waiting requests, the operation will not be performed.)\n"
        )
        http.answer(200, text, "text/plain")

    def _metrics(self, http: HttpRequest) -> None:
        scheduler, label = self._scheduler, f'{{model_name="{self._limits.model}"}}'
        values: dict[str, Any] = {
            "num_running_reqs": len(scheduler.running), "num_queue_reqs": len(scheduler.waiting),
            "num_used_tokens": scheduler.tokens, "token_usage": round(scheduler.usage, 4),
            "gen_throughput": round(self._rate, 2), "prompt_tokens_total": self._totals["prompt"],
            "generation_tokens_total": self._totals["generation"],
            "num_requests_total": self._totals["requests"],
        }  # fmt: skip
        lines = [
            f"# TYPE sglang:{name} gauge\nsglang:{name}{label} {value}" for name, value in values.items()
        ]
        http.answer(200, ("\n".join(lines) + "\n").encode(), "text/plain; version=0.0.4")
