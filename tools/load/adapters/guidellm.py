"""guidellm's JSON report: one benchmark for each load that it ran."""

import json
from pathlib import Path
from typing import Any

from moeagent.memory.errors import InputError
from moeagent.memory.records import ClientHealth, Distribution, Rung
from moeagent.tools.load.adapters.flat import number
from moeagent.tools.load.adapters.records import ForeignRung
from moeagent.tools.load.adapters.traps import traps_of

LATE_SHARE = 0.05
"""Dispatch delay against TTFT above which the load was not the one that was asked for."""


def read_guidellm(path: Path) -> tuple[ForeignRung, ...]:
    """Every benchmark of a report. InputError for a file that is not one."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path} line {error.lineno}: {error.msg}") from error
    benchmarks = report.get("benchmarks") if isinstance(report, dict) else None
    if not isinstance(benchmarks, list) or not benchmarks:
        raise InputError(f"{path} holds no `benchmarks`: it is not a report of guidellm")
    return tuple(foreign_rung(entry, f"{path} benchmark {n}") for n, entry in enumerate(benchmarks, start=1))


def foreign_rung(entry: Any, where: str) -> ForeignRung:
    """One benchmark as a rung; its own ITL is a mean per request and stands here as TPOT."""
    try:
        metrics, totals = entry["metrics"], entry["metrics"]["request_totals"]
        completed, failed = int(totals["successful"]), int(totals["errored"]) + int(totals["incomplete"])
        tokens = number(metrics["output_token_count"]["successful"]["total_sum"])
        prompt = number(((metrics.get("prompt_token_count") or {}).get("successful") or {}).get("total_sum"))
        duration = float(entry["duration"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: not of the known format, {error!r}") from error
    rung = Rung(
        concurrency=streams(entry),
        completed=completed,
        failed=failed,
        failures_by_kind={k: int(totals[k]) for k in ("errored", "incomplete") if totals[k]},
        duration_s=duration,
        output_tok_s=tokens / duration if tokens is not None and duration > 0 and completed else None,
        total_tok_s=(tokens + prompt) / duration
        if tokens and prompt and duration > 0 and completed
        else None,
        ttft_ms=successful(metrics, "time_to_first_token_ms"),
        tpot_ms=successful(metrics, "inter_token_latency_ms"),
        e2e_ms=scaled(successful(metrics, "request_latency"), 1000),
        output_tokens=None if tokens is None else round(tokens),
        prompt_tokens=None if prompt is None else round(prompt),
        requests=int(totals["total"]),
        client=ClientHealth(cpu_s=0.0, loop_lag_ms=0.0, valid=True, why="the tool does not watch itself"),
        invalid="; ".join(doubts(metrics, completed, failed)),
        note="; ".join(
            ("measured by guidellm", "TPOT is what it calls inter-token latency", *warnings(entry))
        ),
    )
    return ForeignRung(
        tool="guidellm",
        rung=rung,
        traps=traps_of("guidellm", corrected=frozenset({"itl-is-tpot", "tpot-includes-ttft"})),
    )


def streams(entry: dict[str, Any]) -> int:
    """The concurrency asked for, else the mean one that was reached."""
    strategy = (entry.get("config") or {}).get("strategy") or {}
    asked = number(strategy.get("streams"))
    if asked is None:
        reached = (entry["metrics"].get("request_concurrency") or {}).get("successful") or {}
        asked = number(reached.get("mean"))
    return max(1, round(asked or 1))


def successful(metrics: dict[str, Any], name: str) -> Distribution | None:
    """One metric's distribution over the successful requests."""
    return told((metrics.get(name) or {}).get("successful") or {})


def told(found: dict[str, Any]) -> Distribution | None:
    """A distribution as the report has it; None when nothing was counted."""
    shares = found.get("percentiles") or {}
    values = [number(v) for v in (found.get("mean"), *(shares.get(p) for p in ("p50", "p90", "p95", "p99")))]
    if not found.get("count") or any(v is None for v in values):
        return None
    mean, p50, p90, p95, p99 = (v or 0.0 for v in values)
    return Distribution(mean=mean, p50=p50, p90=p90, p95=p95, p99=p99)


def warnings(entry: dict[str, Any]) -> list[str]:
    """What the tool itself warns of."""
    found = entry.get("warnings")
    return (
        [str(w.get("message", "")) for w in found if isinstance(w, dict)] if isinstance(found, list) else []
    )


def scaled(distribution: Distribution | None, factor: float) -> Distribution | None:
    """The distribution in another unit."""
    if distribution is None:
        return None
    return Distribution(**{name: value * factor for name, value in distribution.model_dump().items()})


def doubts(metrics: dict[str, Any], completed: int, failed: int) -> list[str]:
    """Why the figures may not be used."""
    found = [] if completed else ["no request completed"]
    if failed:
        found.append(f"{failed} requests failed")
    delay = told(metrics.get("root_dispatch_delay") or {}) or successful(metrics, "request_dispatch_delay")
    ttft = successful(metrics, "time_to_first_token_ms")
    if delay and ttft and delay.p99 * 1000 > LATE_SHARE * ttft.p50:
        found.append(f"requests were sent {delay.p99 * 1000:.0f} ms late: the load was not delivered")
    return found
