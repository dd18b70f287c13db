"""How the other tools are run: their command lines for one rung."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from moeagent.memory.records import Record
from moeagent.tools.load.adapters.records import ToolName


class ForeignRun(Record):
    """One rung for another tool."""

    url: str
    model: str
    tokenizer: str
    concurrency: int
    requests: int
    input_len: int
    output_len: int
    seed: int
    result: str
    """Path of the result file on the host; a fresh one for each run, because these tools append."""


def command(tool: ToolName, run: ForeignRun, *, launch: Sequence[str]) -> list[str]:
    """The argument list; `launch` starts the tool's installation, such as a venv's python."""
    if tool in ("sglang-py", "sglang-rust"):
        return [*launch, *sglang(run, rust=tool == "sglang-rust")]
    if tool in ("vllm-py", "vllm-rs"):
        return [*launch, *vllm(run)]
    return [*launch, *guidellm(run)]


def sglang(run: ForeignRun, *, rust: bool) -> list[str]:
    """Fixed lengths need range ratio 1.0 here, the opposite of vLLM's convention."""
    module = "sglang.benchmark.rust_client" if rust else "sglang.bench_serving"
    return [
        "-m", module, "--backend", "sglang-oai", "--base-url", run.url, "--model", run.model,
        "--tokenizer", run.tokenizer, "--dataset-name", "random-ids",
        "--random-input-len", str(run.input_len), "--random-output-len", str(run.output_len),
        "--random-range-ratio", "1.0", "--num-prompts", str(run.requests),
        "--max-concurrency", str(run.concurrency), "--seed", str(run.seed), "--output-file", run.result,
        "--output-details", "--disable-tqdm",
    ]  # fmt: skip


def vllm(run: ForeignRun) -> list[str]:
    """Fixed lengths are range ratio 0 here; a result file is only written when asked for."""
    path = PurePosixPath(run.result)
    return [
        "bench", "serve", "--backend", "openai", "--endpoint", "/v1/completions", "--base-url", run.url,
        "--model", run.model, "--tokenizer", run.tokenizer, "--dataset-name", "random",
        "--random-input-len", str(run.input_len), "--random-output-len", str(run.output_len),
        "--random-range-ratio", "0", "--num-prompts", str(run.requests),
        "--max-concurrency", str(run.concurrency), "--seed", str(run.seed), "--ignore-eos",
        "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,95,99",
        "--save-result", "--save-detailed", "--result-dir", str(path.parent), "--result-filename", path.name,
        "--disable-tqdm",
    ]  # fmt: skip


def guidellm(run: ForeignRun) -> list[str]:
    """One concurrency of synthetic prompts, in the form of guidellm 0.8."""
    return [
        "run", "--backend", f"kind=openai_http,target={run.url},model={run.model}",
        "--profile", f"kind=concurrent,streams={run.concurrency}",
        "--constraint", f"kind=max_requests,count={run.requests}",
        "--data", f"kind=synthetic_text,prompt_tokens={run.input_len},output_tokens={run.output_len}",
        "--tokenizer", f"kind=huggingface_auto,model={run.tokenizer}",
        "--seed", f"kind=static,value={run.seed}",
        "--output", f"kind=json,path={run.result}", "--disable-console",
    ]  # fmt: skip
