"""Result files of sglang.bench_serving and `vllm bench serve`: one flat JSON object a run."""

import json
import math
from pathlib import Path
from typing import Any

from moeagent.memory.errors import InputError
from moeagent.memory.records import ClientHealth, Distribution, Rung
from moeagent.tools.load.adapters.records import ForeignRung, ToolName
from moeagent.tools.load.adapters.traps import traps_of
from moeagent.tools.load.figures import distribution

REQUIRED = ("completed", "duration", "total_output_tokens", "output_throughput")
RETOKENISED_SHARE = 0.9
"""Below this share the counted tokens are not in the text: failed requests were credited."""


def read_flat(path: Path, tool: ToolName, *, asked: int | None = None) -> tuple[ForeignRung, ...]:
    """Every run in the file. `asked` is the number of requests, where the tool does not keep it.

    InputError, with the line, for a file that is not such a result.
    """
    return tuple(foreign_rung(entry, tool, asked=asked) for entry in objects(path))


def objects(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file, one a line or a single one over several lines."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    try:
        whole = json.loads(text)
        return [checked(whole, str(path))]
    except json.JSONDecodeError:
        lines = [(n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise InputError(f"{path} is empty: the tool writes nothing when it fails; look at its messages")
    return [parsed(line, f"{path} line {number}") for number, line in lines]


def parsed(line: str, where: str) -> dict[str, Any]:
    """One line's object; Python's JSON takes the NaN and Infinity that these tools write."""
    try:
        return checked(json.loads(line), where)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: {error.msg}") from error


def checked(entry: Any, where: str) -> dict[str, Any]:
    """The object, when it has what every result has."""
    missing = [key for key in REQUIRED if not isinstance(entry, dict) or key not in entry]
    if missing:
        raise InputError(f"{where}: not a result of this tool, {', '.join(missing)} missing")
    found: dict[str, Any] = entry
    return found


def foreign_rung(entry: dict[str, Any], tool: ToolName, *, asked: int | None) -> ForeignRung:
    """One result as a rung: what it states, corrected where its own details allow."""
    failed = failures(entry, asked)
    corrected = corrected_tokens(entry)
    tokens = corrected if corrected is not None else int(entry["total_output_tokens"])
    if (in_text := overcounted(entry)) is not None:
        tokens = min(tokens, in_text)
    duration = float(entry["duration"])
    reasons = doubts(entry, failed)
    prompt = entry.get("total_input_tokens")
    rung = Rung(
        concurrency=int(entry.get("max_concurrency") or round(number(entry.get("concurrency")) or 0) or 1),
        completed=int(entry["completed"]),
        failed=failed,
        failures_by_kind={"unknown": failed} if failed else {},
        duration_s=duration,
        output_tok_s=tokens / duration if duration > 0 and entry["completed"] else None,
        total_tok_s=(tokens + prompt) / duration if duration > 0 and prompt and entry["completed"] else None,
        ttft_ms=stated(entry, "ttft", "ttfts"),
        tpot_ms=stated(entry, "tpot", None),
        itl_ms=stated(entry, "itl", "itls"),
        e2e_ms=stated(entry, "e2el", None) or stated(entry, "e2e_latency", None),
        goodput_rps=number(entry.get("request_goodput")),
        requests=asked or entry.get("num_prompts"),
        output_tokens=tokens,
        prompt_tokens=prompt,
        client=ClientHealth(cpu_s=0.0, loop_lag_ms=0.0, valid=True, why="the tool does not watch itself"),
        invalid="; ".join(reasons),
        note=f"measured by {tool}",
    )
    names = {"requested-length-credited", "in-stream-error-is-success"} if corrected is not None else set()
    return ForeignRung(tool=tool, rung=rung, traps=traps_of(tool, corrected=frozenset(names)))


def failures(entry: dict[str, Any], asked: int | None) -> int:
    """Failed requests: stated, or the difference to those asked for."""
    if isinstance(entry.get("failed"), int):
        return int(entry["failed"])
    wanted = asked if asked is not None else entry.get("num_prompts")
    return max(0, int(wanted) - int(entry["completed"])) if wanted is not None else 0


def corrected_tokens(entry: dict[str, Any]) -> int | None:
    """Tokens of the requests without an error message, by the details; None without details."""
    lengths, errors = entry.get("output_lens"), entry.get("errors")
    if not isinstance(lengths, list) or not isinstance(errors, list) or len(lengths) != len(errors):
        return None
    return sum(int(n) for n, error in zip(lengths, errors, strict=True) if not error)


def doubts(entry: dict[str, Any], failed: int) -> list[str]:
    """Why the figures may not be used."""
    found = []
    if (in_text := overcounted(entry)) is not None:
        share = in_text / entry["total_output_tokens"]
        found.append(f"only {share:.0%} of the counted tokens are in the text: failures were credited")
    if not entry["completed"]:
        found.append("no request completed")
    if failed:
        found.append(f"{failed} requests failed")
    return found


def overcounted(entry: dict[str, Any]) -> int | None:
    """Tokens in the answers' text where the tool counts far more than these; None where it does not."""
    in_text, total = number(entry.get("total_output_tokens_retokenized")), entry["total_output_tokens"]
    return int(in_text) if in_text is not None and in_text < RETOKENISED_SHARE * total else None


def stated(entry: dict[str, Any], name: str, details: str | None) -> Distribution | None:
    """A latency's distribution: from per-request seconds where the file has them, else as it is stated.

    A percentile that the tool did not state is filled with the next higher one, never a lower one.
    """
    samples = flattened(entry.get(details)) if details else []
    if samples:
        return distribution([s * 1000 for s in samples])
    mean, p50, p99 = (number(entry.get(f"{kind}_{name}_ms")) for kind in ("mean", "median", "p99"))
    if mean is None or p50 is None or p99 is None:
        return None
    p95 = number(entry.get(f"p95_{name}_ms"))
    p95 = p99 if p95 is None else p95
    p90 = number(entry.get(f"p90_{name}_ms"))
    return Distribution(mean=mean, p50=p50, p90=p95 if p90 is None else p90, p95=p95, p99=p99)


def flattened(values: Any) -> list[float]:
    """Numbers of a list, or of a list of lists."""
    if not isinstance(values, list):
        return []
    inner = [v for value in values for v in (value if isinstance(value, list) else [value])]
    return [float(v) for v in inner if number(v) is not None]


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
