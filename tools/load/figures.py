"""From per-request results to the figures of a rung: pure, so that they can be computed again at any time.

Formulas: TTFT = first event with text - send. TPOT = (last token - first token) / (tokens - 1). ITL = gap
between two events with text / tokens in the later one, once for each of its tokens. E2E = last token - send.
Output tok/s = tokens of the complete requests / (last token - first send). Percentiles interpolate linearly.
"""

import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from moeagent.memory.errors import InputError
from moeagent.memory.records import Distribution, Rung
from moeagent.tools.load.health import client_health
from moeagent.tools.load.plausible import implausible
from moeagent.tools.load.spec import Slo
from moeagent.tools.load.stalls import stalled_share

Answer = dict[str, Any]
FORMAT = 1
STEADY_SHARE = 0.95
DIGITS = 4
"""Of milliseconds and rates: finer than the microseconds that the stamps are kept in."""


def pack(payload: dict[str, Any]) -> bytes:
    """The per-request results as they are kept."""
    return zlib.compress(json.dumps({"format": FORMAT, **payload}, separators=(",", ":")).encode(), 6)


def unpack(raw: bytes) -> dict[str, Any]:
    """The inverse of `pack`; InputError when the bytes are something else."""
    try:
        payload = json.loads(zlib.decompress(raw))
    except (zlib.error, ValueError) as error:
        raise InputError(
            f"not a file of per-request results ({error}): give one that bench --save wrote"
        ) from error
    if not isinstance(payload, dict) or payload.get("format") != FORMAT:
        raise InputError(
            f"per-request results of another format than {FORMAT}: use the version that wrote them"
        )
    return payload


def recompute(raw: bytes) -> Rung:
    """The rung's figures from its per-request results: the same function that computed them first."""
    return rung_of(unpack(raw))


def rung_of(payload: dict[str, Any]) -> Rung:
    """All figures of one rung."""
    plan, answers = payload["plan"], payload["answers"]
    complete = [a for a in answers if not a["kind"]]
    window_us = span_us(answers)
    ttft, itl, tpot, e2e = latencies(complete)
    counted = [a for a in complete if a["out"] is not None]
    out = sum(a["out"] for a in counted)
    prompt = total(a["prompt"] for a in complete)
    health = client_health(payload["health"], answers, plan)
    rung = Rung(
        concurrency=plan["concurrency"],
        completed=len(complete),
        failed=len(answers) - len(complete),
        failures_by_kind=dict(sorted(Counter(a["kind"] for a in answers if a["kind"]).items())),
        failure_examples=examples(answers),
        requests=plan["requests"],
        duration_s=window_us / 1e6,
        output_tok_s=per_second(out, window_us) if counted else None,
        total_tok_s=per_second(out + prompt, window_us) if counted and prompt is not None else None,
        delivered_tok_s=per_second(sum(delivered(a) for a in answers), window_us) if answers else None,
        steady_output_tok_s=steady_tok_s(answers, plan),
        ttft_ms=distribution(ttft),
        itl_ms=distribution(itl),
        tpot_ms=distribution(tpot),
        e2e_ms=distribution(e2e),
        goodput_rps=goodput(complete, plan.get("slo"), window_us),
        prompt_tokens=prompt,
        output_tokens=out if counted else None,
        tokens_per_event=tokens_per_event(counted),
        cache_hit_rate=hit_rate(complete),
        request_rate=plan.get("rate"),
        stalled=stalled_share(answers, plan["concurrency"], closed_loop=plan.get("rate") is None),
        client=health,
        note="; ".join(notes(payload)),
    )
    reasons = [health.why] if not health.valid else []
    reasons += implausible(rung, answers, plan)
    return rung.model_copy(update={"invalid": "; ".join(reasons)})


def total(values: Iterable[int | None]) -> int | None:
    """Their sum; None when there are none or one is unknown."""
    seen = list(values)
    known = [v for v in seen if v is not None]
    return sum(known) if seen and len(known) == len(seen) else None


def span_us(answers: Sequence[Answer]) -> int:
    """First send to last token of any request, in microseconds."""
    if not answers:
        return 0
    last: int = max(a["send"] + sum(a["gaps"]) for a in answers)
    first: int = min(a["send"] for a in answers)
    return max(0, last - first)


def per_second(count: float, window_us: int) -> float | None:
    """Rate over the window; None when the window is empty."""
    return round(count * 1e6 / window_us, DIGITS) if window_us > 0 else None


def latencies(complete: Sequence[Answer]) -> tuple[list[float], list[float], list[float], list[float]]:
    """TTFT, ITL, TPOT and E2E samples in milliseconds."""
    ttft, itl, tpot, e2e = [], [], [], []
    for answer in complete:
        gaps = answer["gaps"]
        ttft.append(gaps[0] / 1000)
        e2e.append(sum(gaps) / 1000)
        itl.extend(token_gaps(answer))
        if (answer["out"] or 0) > 1:
            tpot.append((sum(gaps) - gaps[0]) / 1000 / (answer["out"] - 1))
    return ttft, itl, tpot, e2e


def token_gaps(answer: Answer) -> list[float]:
    """Inter-token latencies of one request in milliseconds, one per token after the first event."""
    gaps, tokens, out = answer["gaps"][1:], answer["tokens"], answer["out"]
    if tokens:
        return [gap / n / 1000 for gap, n in zip(gaps, tokens[1:], strict=True) for _ in range(n)]
    events = len(gaps) + 1
    each = out / events if out and out > events else 1.0
    return [gap / each / 1000 for gap in gaps]


def distribution(samples: Sequence[float]) -> Distribution | None:
    """Mean and percentiles; None without samples."""
    if not samples:
        return None
    ordered = sorted(samples)
    p50, p90, p95, p99 = (percentile(ordered, q) for q in (0.5, 0.9, 0.95, 0.99))
    return Distribution(
        mean=round(math.fsum(ordered) / len(ordered), DIGITS), p50=p50, p90=p90, p95=p95, p99=p99
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Linear interpolation between the two samples around the share."""
    position = (len(ordered) - 1) * share
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return round(ordered[below] + (ordered[above] - ordered[below]) * (position - below), DIGITS)


def delivered(answer: Answer) -> int:
    """Tokens that were received, by the server's count where it got that far, else one per event."""
    if answer["out"] is not None:
        return int(answer["out"])
    return int(sum(answer["tokens"]) if answer["tokens"] else len(answer["gaps"]))


def steady_tok_s(answers: Sequence[Answer], plan: dict[str, Any]) -> float | None:
    """Tokens per second while at least 95 % of the concurrency was in flight; None when it never was."""
    need = math.ceil(plan["concurrency"] * STEADY_SHARE)
    if plan.get("rate") is not None or len(answers) < need:
        return None
    sends, ends = sorted(a["send"] for a in answers), sorted(a["end"] for a in answers)
    start, stop = sends[need - 1], ends[len(ends) - need]
    inside = 0.0
    for answer in answers:
        stamps = list(accumulate(answer["gaps"], initial=answer["send"]))[1:]
        each = delivered(answer) / len(stamps) if stamps else 0
        inside += each * sum(1 for stamp in stamps if start <= stamp <= stop)
    return per_second(inside, stop - start)


def goodput(complete: Sequence[Answer], slo: dict[str, Any] | None, window_us: int) -> float | None:
    """Complete requests per second that meet the SLO; None without one."""
    if slo is None:
        return None
    bounds = Slo.model_validate(slo)
    return per_second(sum(1 for a in complete if meets(a, bounds)), window_us)


def meets(answer: Answer, slo: Slo) -> bool:
    """Whether one complete request meets every bound."""
    gaps, out = answer["gaps"], answer["out"] or 0
    tpot = (sum(gaps) - gaps[0]) / 1000 / (out - 1) if out > 1 else 0.0
    seen = ((slo.ttft_ms, gaps[0] / 1000), (slo.tpot_ms, tpot), (slo.e2e_ms, sum(gaps) / 1000))
    return all(bound is None or value <= bound for bound, value in seen)


def tokens_per_event(counted: Sequence[Answer]) -> float | None:
    """Mean number of tokens in an event with text."""
    events = sum(len(a["gaps"]) for a in counted)
    return sum(a["out"] for a in counted) / events if events else None


def hit_rate(complete: Sequence[Answer]) -> float | None:
    """Cached part of the prompt tokens; None where the server says nothing."""
    cached = [(a["cached"], a["prompt"]) for a in complete if a["cached"] is not None and a["prompt"]]
    prompt = sum(p for _, p in cached)
    return sum(c for c, _ in cached) / prompt if prompt else None


def examples(answers: Sequence[Answer]) -> dict[str, str]:
    """The first message of each kind of failure."""
    found: dict[str, str] = {}
    for answer in answers:
        if answer["kind"]:
            found.setdefault(answer["kind"], answer["detail"])
    return dict(sorted(found.items()))


def notes(payload: dict[str, Any]) -> list[str]:
    """What a reader of the figures should know."""
    said = [payload["stopped"]] if payload["stopped"] else []
    if payload["unsent"]:
        said.append(f"{payload['unsent']} of {payload['plan']['requests']} requests were never sent")
    if payload["flushed"] not in ("", "flushed"):
        said.append(payload["flushed"])
    waves = [w for part in payload["warmup"] for w in part]
    if sum(w["failed"] for w in waves):
        said.append(f"{sum(w['failed'] for w in waves)} warm-up requests failed")
    if any(part and not part[-1].get("steady", True) for part in payload["warmup"]):
        said.append("throughput was not steady when the warm-up ended")
    if payload["plan"].get("counted_by"):
        said.append(f"tokens counted by {payload['plan']['counted_by']}")
    return said
