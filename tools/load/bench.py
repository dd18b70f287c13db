"""A ladder of rungs against one server: what `moeagent bench` runs."""

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from moeagent.memory.errors import InputError
from moeagent.memory.records import Rung
from moeagent.tools.load.arrivals import arrivals, trace
from moeagent.tools.load.datasets import conversations_from_file, prompts_from_file, trace_from_file
from moeagent.tools.load.figures import recompute
from moeagent.tools.load.probe import Calibration, calibrate, identify, probe
from moeagent.tools.load.runner import Progress, run_rung
from moeagent.tools.load.spec import (
    Arrivals,
    Prompt,
    RandomPrompts,
    RungOutcome,
    RungSpec,
    Slo,
    StopRule,
    Target,
    WarmUp,
)
from moeagent.tools.load.tokens import count_tokens

FORMAT = "moeagent-bench-1"
REQUESTS_PER_SLOT = ((256, 4.0), (100_000, 3.0))
"""Up to this concurrency, requests per slot: fewer waves are enough where each wave has many requests."""
MIN_REQUESTS = 6
SLOTS_PER_PROCESS = 1024
"""One core is worth about 59,000 tokens/s in the measurements behind health.py: 1,024 streams at 20 ms."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What the user asked for."""

    concurrencies: tuple[int, ...]
    input_len: int = 1024
    output_len: int = 128
    dataset: Literal["random", "sharegpt", "prefix", "file"] = "random"
    path: Path | None = None
    requests: int | None = None
    duration_s: float | None = None
    rate: float | None = None
    arrival: str = "poisson"
    burst_size: int = 10
    shared_words: float = 0.5
    """Share of a prefix prompt that its group has in common."""
    groups: int = 8
    seed: str = "0"
    exact: bool = True
    slo: Slo | None = None
    flush: str = "auto"
    """auto (by engine), none, or a path."""
    processes: int | None = None
    warmup: WarmUp | None = field(default_factory=WarmUp)
    tokenizer: Path | None = None
    max_failed: int | None = None
    timeout_s: float = 600.0
    ids: tuple[int, int] | None = None
    spread: float = 0.0
    detect_api: bool = True
    detect_model: bool = True


class Ready(NamedTuple):
    """A target that has answered its probes."""

    target: Target
    engine: str
    calibration: Calibration
    flush_path: str | None


FLUSH_PATHS = {"sglang": "/flush_cache"}
"""vLLM's /reset_prefix_cache exists only in its development mode; llama.cpp is asked not to cache."""


def prepare(target: Target, plan: BenchPlan) -> Ready:
    """Ask the server what it is, check that it streams, and calibrate the prompts.

    InputError or HostError, with what to do, when the server does not answer one request as it should.
    """
    known = identify(target, timeout_s=min(plan.timeout_s, 10.0))
    changes: dict[str, str] = {}
    if plan.detect_api:
        changes["api"] = known.api
    if plan.detect_model and known.model:
        changes["model"] = known.model
    target = target.model_copy(update=changes)
    probe(
        target,
        8,
        timeout_s=plan.timeout_s,
        seed="probe",
        exact=plan.exact,
        keep_text=plan.tokenizer is not None,
    )
    calibration = calibrate(target, plan.input_len, timeout_s=plan.timeout_s)
    flush = FLUSH_PATHS.get(known.engine) if plan.flush == "auto" else plan.flush
    return Ready(target, known.engine, calibration, None if flush == "none" else flush)


def scaled_requests(concurrency: int) -> int:
    """Requests of a rung whose number was not given."""
    per_slot = next(share for limit, share in REQUESTS_PER_SLOT if concurrency <= limit)
    return max(MIN_REQUESTS, round(concurrency * per_slot))


def rung_spec(plan: BenchPlan, concurrency: int, ready: Ready) -> RungSpec:
    """One rung of the plan; its prompts differ from those of every other rung."""
    seed, calibration = f"{plan.seed}/{concurrency}", ready.calibration
    count = plan.requests or scaled_requests(concurrency)
    prompts, when = prepared(plan, seed, calibration)
    if plan.rate is not None and when is None:
        offered = int(plan.rate * plan.duration_s) if plan.duration_s else count
        when = arrivals(plan.arrival, plan.rate, max(1, offered), seed=seed, burst_size=plan.burst_size)
    shared = round(calibration.words * plan.shared_words) if plan.dataset == "prefix" else 0
    own = max(1, calibration.words - shared)
    return RungSpec(
        concurrency=concurrency,
        requests=None if plan.duration_s and plan.requests is None and when is None else count,
        duration_s=plan.duration_s if when is None else None,
        output_len=plan.output_len,
        random=RandomPrompts(
            words=own, prefix_words=shared, groups=plan.groups, ids=plan.ids, spread=plan.spread
        ),
        prompts=prompts,
        seed=seed,
        exact_length=plan.exact,
        arrivals=when,
        warmup=plan.warmup,
        flush_path=ready.flush_path,
        slo=plan.slo,
        stop=StopRule(max_failed=plan.max_failed),
        processes=plan.processes or -(-concurrency // SLOTS_PER_PROCESS),
        keep_text=plan.tokenizer is not None,
        first_byte_timeout_s=plan.timeout_s,
        stall_timeout_s=plan.timeout_s,
    )


def prepared(
    plan: BenchPlan, seed: str, calibration: Calibration
) -> tuple[tuple[Prompt, ...], Arrivals | None]:
    """Prompts that come from a file, and their arrival times when it is a trace."""
    if plan.path is None:
        if plan.dataset in ("sharegpt", "file") or plan.arrival == "trace":
            raise InputError(f"--dataset {plan.dataset} needs --dataset-path FILE")
        return (), None
    if plan.arrival == "trace":
        per_token = 1 / calibration.tokens_per_word
        timed = trace_from_file(plan.path, output_len=plan.output_len, words_per_token=per_token)
        timed = timed[: plan.requests] if plan.requests else timed
        return tuple(t.prompt for t in timed), trace([t.at_s for t in timed], rate=plan.rate)
    if plan.dataset == "sharegpt":
        return conversations_from_file(plan.path, output_len=None, seed=seed), None
    if plan.dataset == "file":
        return prompts_from_file(plan.path, output_len=plan.output_len), None
    raise InputError(f"--dataset-path is for --dataset file, sharegpt or --arrival trace, not {plan.dataset}")


def run_ladder(
    ready: Ready, plan: BenchPlan, *, deadline_s: float, on_progress: Callable[[int], Progress]
) -> Iterator[RungOutcome]:
    """Outcome after outcome, rising; ends after a rung in which the server stopped taking connections."""
    specs = [rung_spec(plan, concurrency, ready) for concurrency in plan.concurrencies]
    for spec in specs:
        outcome = run_rung(
            ready.target, spec, on_progress=on_progress(spec.concurrency), deadline_s=deadline_s
        )
        if plan.tokenizer is not None:
            outcome = count_tokens(outcome, plan.tokenizer, exact=plan.exact)
        yield outcome
        if outcome.rung.failures_by_kind.get("connect"):
            return


def save(path: Path, raws: Sequence[bytes]) -> None:
    """Keep the per-request results of all rungs; the file appears whole or not at all."""
    content = json.dumps({"format": FORMAT, "rungs": [base64.b64encode(raw).decode() for raw in raws]})
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_bytes(zlib.compress(content.encode(), 1))
        partial.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error}; choose another --save FILE") from error


def load(path: Path) -> list[Rung]:
    """The rungs of a saved file, computed again from the per-request results."""
    try:
        content = json.loads(zlib.decompress(path.read_bytes()))
        if content["format"] != FORMAT:
            raise InputError(f"{path} has format {content['format']!r}, not {FORMAT}")
        raws = [base64.b64decode(raw) for raw in content["rungs"]]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error}") from error
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} was not written by bench --save: {error}") from error
    return [recompute(raw) for raw in raws]
