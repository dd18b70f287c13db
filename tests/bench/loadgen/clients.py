"""The load generators that are compared, each as a command and a reader of its result.

The incumbents are found by environment variables: INCUMBENTS_PYTHON, a Python in which `sglang.benchmark`
and `vllm.benchmarks` can be imported, and INCUMBENTS_VLLM_RS, the `vllm-rs` binary of a vLLM wheel.
INCUMBENTS_TOKENIZER is a folder with a tokenizer for them. Those that are missing are left out of the table.
"""

import base64
import json
import os
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.loadgen.true_figures import Figures

from moeagent.memory.records import Rung
from moeagent.tools.load import RandomPrompts, RungSpec, Target
from moeagent.tools.load.bundle import loadgen_archive
from moeagent.tools.load.figures import pack, recompute
from moeagent.tools.load.job import build_job
from moeagent.tools.load.runner import plan_of


@dataclass(frozen=True)
class Load:
    """One rung that every client is asked for."""

    url: str
    concurrency: int
    requests: int
    tokens_in: int = 128
    tokens_out: int = 128


@dataclass(frozen=True)
class Client:
    """How to run a client, and how to read what it says."""

    name: str
    argv: tuple[str, ...]
    stdin: bytes
    read: Callable[[bytes], Figures]
    rung: Callable[[bytes], Rung] | None = None


def ours(load: Load, folder: Path, *, realtime: bool = True) -> Client:
    """moeagent's own load generator, run as it runs on a GPU host: one archive, one Python."""
    archive = folder / "loadgen.pyz"
    archive.write_bytes(loadgen_archive())
    target = Target(base_url=load.url, api="openai-chat", model="mock")
    spec = RungSpec(
        concurrency=load.concurrency, requests=load.requests, output_len=load.tokens_out,
        random=RandomPrompts(words=load.tokens_in), warmup=None, realtime=realtime,
    )  # fmt: skip
    job = build_job(target, spec, deadline_s=300)
    return Client(
        "moeagent",
        (sys.executable, str(archive)),
        json.dumps(job).encode(),
        lambda out: figures_of(rung_of_output(out, spec, job)),
        rung=lambda out: rung_of_output(out, spec, job),
    )


def rung_of_output(out: bytes, spec: RungSpec, job: dict[str, object]) -> Rung:
    """The rung in the load generator's standard output."""
    result = json.loads(zlib.decompress(base64.b64decode(json.loads(out.splitlines()[-1])["result"])))
    return recompute(pack({"plan": plan_of(spec, job), **result}))


def figures_of(rung: Rung) -> Figures:
    """The compared figures of a rung."""
    assert rung.output_tok_s
    assert rung.ttft_ms
    assert rung.itl_ms
    return Figures(rung.output_tok_s, rung.ttft_ms.p50, rung.ttft_ms.p99, rung.itl_ms.p99)


def incumbents(load: Load, folder: Path) -> list[Client]:
    """The clients of SGLang and vLLM that this machine has."""
    tokenizer = os.environ.get("INCUMBENTS_TOKENIZER", "")
    python, rust = os.environ.get("INCUMBENTS_PYTHON"), os.environ.get("INCUMBENTS_VLLM_RS")
    found = []
    if python:
        found += [
            sglang(load, folder, python, tokenizer, rust=False),
            sglang(load, folder, python, tokenizer, rust=True),
        ]
        found.append(vllm(load, folder, (python, "-m", "vllm.entrypoints.cli.main"), tokenizer, "vllm-py"))
    if rust:
        found.append(vllm(load, folder, (rust,), tokenizer, "vllm-rs"))
    return found


def sglang(load: Load, folder: Path, python: str, tokenizer: str, *, rust: bool) -> Client:
    """sglang.benchmark.serving, or its Rust client."""
    name = "sglang-rust" if rust else "sglang-py"
    result = folder / f"{name}.jsonl"
    argv = (
        python, "-m", "sglang.benchmark.rust_client" if rust else "sglang.benchmark.serving",
        "--backend", "sglang-oai-chat", "--base-url", load.url, "--model", "mock", "--tokenizer", tokenizer,
        "--dataset-name", "random-ids", "--random-input-len", str(load.tokens_in),
        "--random-output-len", str(load.tokens_out), "--random-range-ratio", "1.0",
        "--num-prompts", str(load.requests), "--max-concurrency", str(load.concurrency),
        "--output-file", str(result), "--disable-tqdm", "--warmup-requests", "0",
    )  # fmt: skip
    return Client(name, argv, b"", lambda _: flat_figures(last_line(result), "output_throughput"))


def vllm(load: Load, folder: Path, launch: tuple[str, ...], tokenizer: str, name: str) -> Client:
    """`vllm bench serve`, Python or Rust."""
    argv = (
        *launch, "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions",
        "--base-url", load.url, "--model", "mock", "--tokenizer", tokenizer, "--dataset-name", "random",
        "--random-input-len", str(load.tokens_in), "--random-output-len", str(load.tokens_out),
        "--num-prompts", str(load.requests), "--max-concurrency", str(load.concurrency), "--ignore-eos",
        "--save-result", "--result-dir", str(folder), "--result-filename", f"{name}.json", "--disable-tqdm",
        "--percentile-metrics", "ttft,tpot,itl,e2el",
    )  # fmt: skip
    result = folder / f"{name}.json"
    return Client(name, argv, b"", lambda _: flat_figures(last_line(result), "output_throughput"))


def last_line(path: Path) -> dict[str, float]:
    """The last JSON object of a result file."""
    text = path.read_text().strip()
    parsed: dict[str, float] = json.loads(text.splitlines()[-1] if not text.startswith("{\n") else text)
    return parsed


def flat_figures(result: dict[str, float], throughput: str) -> Figures:
    """The compared figures in the flat result that sglang and vllm share."""
    return Figures(result[throughput], result["median_ttft_ms"], result["p99_ttft_ms"], result["p99_itl_ms"])
