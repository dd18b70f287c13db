"""The predictor against the end-to-end points that aiconfigurator-core carries.

Run `PYTHONPATH=tests python -m bench.predict.end_to_end`. Needs `moeagent[kernels]`. Points that the table of
measurements holds too are left out, and so are disaggregated and attention-data-parallel servers.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from statistics import median

from bench.predict.report import Scored, score_rows
from bench.predict.rows import FIXTURES, read_table
from rich.console import Console
from rich.table import Table

_HARDWARE = {"h200_sxm": "H200 SXM", "h100_sxm": "H100 SXM", "b200_sxm": "B200 SXM", "b300_sxm": "B300 SXM"}
_ENGINES = ("sglang", "vllm")


def rows() -> Iterator[dict[str, str]]:
    """The points as rows of the measurements table."""
    text = files("aiconfigurator_core").joinpath("systems/silicon_sample.csv").read_text()
    known = {(r["ttft_ms"], r["tpot_ms"]) for r in read_table(FIXTURES / "measurements.csv")}
    for point in csv.DictReader(text.splitlines()):
        if point["mode"] != "agg" or point["system"] not in _HARDWARE or point["backend"] not in _ENGINES:
            continue
        if int(point["tp_size"]) > 8 or int(point["attention_dp_size"] or 1) > 1:
            continue
        row = _row(point)
        if (row["ttft_ms"], row["tpot_ms"]) not in known:
            yield row


def _row(point: dict[str, str]) -> dict[str, str]:
    ttft, tpot = float(point["silicon_ttft_ms"]), float(point["silicon_tpot_ms"])
    concurrency, output = int(float(point["batch_size"])), int(point["osl"])
    tp, ep = point["tp_size"], point["moe_ep_size"] or "1"
    return {
        "id": point["id"],
        "hardware": _HARDWARE[point["system"]],
        "n_gpus": tp,
        "model": point["model_path"],
        "quant": point["precision"] or "bf16",
        "engine": point["backend"],
        "engine_version": point["backend_version"],
        "parallel": f"TP{tp} EP{ep}",
        "flags": "",
        "concurrency": str(concurrency),
        "input_len": point["isl"],
        "output_len_or_ctx": point["osl"],
        "output_tok_s": str(concurrency * output * 1e3 / (ttft + (output - 1) * tpot)),
        "ttft_ms": f"{ttft:.1f}",
        "tpot_ms": f"{tpot:.2f}",
        "change": "",
        "delta_pct": "",
        "source": "aiconfigurator-core silicon_sample.csv",
        "notes": "",
    }


def render(scored: tuple[Scored, ...], points: dict[str, dict[str, str]], console: Console) -> None:
    """Median error and bias by model, GPU, engine and format."""
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for one in scored:
        row = points[one.id]
        groups[row["model"], row["hardware"], row["engine"], row["quant"]].append(one.error)
    table = Table("model", "GPU", "engine", "format", "points", "median |error|", "bias")
    for key, errors in sorted(groups.items()):
        table.add_row(*key, str(len(errors)), f"{median(map(abs, errors)):.1%}", f"{median(errors):+.1%}")
    console.print(table)
    console.print(f"median absolute error, {len(scored)} points: {median(abs(s.error) for s in scored):.1%}")


if __name__ == "__main__":
    found = {row["id"]: row for row in rows()}
    render(score_rows(found.values()).speeds, found, Console(width=140))
