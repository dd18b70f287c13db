"""`moeagent bench`: load a server and print figures that can be believed, or say why they cannot."""

from pathlib import Path
from typing import Annotated

import typer

from moeagent.agent.cli.options import AsJson
from moeagent.memory.errors import InputError

NO_RESULT = 3
"""Exit code when a rung has no complete request."""

Url = Annotated[
    str | None, typer.Argument(metavar="URL", help="Base URL of the server, such as http://127.0.0.1:30000.")
]
Concurrency = Annotated[
    str, typer.Option(help="Ladder of concurrencies; in open loop, connections kept ready.")
]
Length = Annotated[int, typer.Option(min=1, help="Tokens of each prompt or answer.")]
Dataset = Annotated[
    str, typer.Option(help="random, sharegpt, prefix (shared prefixes) or file (JSON lines).")
]
DatasetPath = Annotated[Path | None, typer.Option(help="The data set's or trace's file.")]
Prompts = Annotated[int | None, typer.Option(min=1, help="Requests per rung; by default scaled with it.")]
Duration = Annotated[float | None, typer.Option(min=0.1, help="Seconds per rung instead of a number.")]
Goodput = Annotated[str | None, typer.Option(help="SLO of a good request, such as ttft:200ms,tpot:50ms.")]
Api = Annotated[str, typer.Option(help="auto, openai-completions, openai-chat, sglang or llamacpp.")]
Model = Annotated[str | None, typer.Option(help="Model name to ask for; the server's first one by default.")]
Rate = Annotated[float | None, typer.Option(min=0.001, help="Open loop: requests per second.")]
Arrival = Annotated[str, typer.Option(help="Open loop: poisson, constant, burst or trace (from the file).")]
KeyEnv = Annotated[str, typer.Option(help="Environment variable that holds the server's bearer token.")]
Save = Annotated[Path | None, typer.Option(help="Keep the per-request results in this file.")]
Recompute = Annotated[Path | None, typer.Option(help="Print the figures of a saved file again; no server.")]
Natural = Annotated[
    bool, typer.Option("--natural-stop", help="Let answers end by themselves (no ignore_eos).")
]
Flush = Annotated[str, typer.Option(help="Path to POST to before each rung: auto, none, or a path.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds without a byte after which a request failed.")]
Deadline = Annotated[float, typer.Option(min=1, help="Seconds that one rung may take.")]


def command(
    url: Url = None,
    concurrency: Concurrency = "1,10,256,1024",
    input_len: Length = 1024,
    output_len: Length = 128,
    dataset: Dataset = "random",
    dataset_path: DatasetPath = None,
    prompts: Prompts = None,
    duration: Duration = None,
    goodput: Goodput = None,
    api: Api = "auto",
    model: Model = None,
    rate: Rate = None,
    arrival: Arrival = "poisson",
    burst_size: Annotated[int, typer.Option(min=1, help="Requests per burst.")] = 10,
    seed: Annotated[str, typer.Option(help="Equal seeds give equal prompts.")] = "0",
    spread: Annotated[float, typer.Option(min=0, max=0.99, help="Draw lengths within this share.")] = 0.0,
    token_ids: Annotated[str | None, typer.Option(help="Prompts of token ids LOW-HIGH, not words.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="tokenizer.json to count with, lacking usage.")
    ] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Client processes.")] = None,
    warmup: Annotated[bool, typer.Option(help="Warm up at each rung's concurrency first.")] = True,
    natural_stop: Natural = False,
    max_failed: Annotated[int | None, typer.Option(min=0, help="Stop a rung after more failures.")] = None,
    flush: Flush = "auto",
    timeout: Timeout = 120.0,
    deadline: Deadline = 3600.0,
    api_key_env: KeyEnv = "MOEAGENT_BENCH_KEY",
    ca_file: Annotated[Path | None, typer.Option(help="Certificate authorities of the server.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Do not verify TLS.")] = False,
    save: Save = None,
    recompute: Recompute = None,
    as_json: AsJson = False,
) -> None:
    """Load a server at rising concurrency and measure it.

    Tokens are counted by the server's usage record, failures are listed by kind and never credited, and a
    rung that the client itself distorted is marked invalid.

    Example: moeagent bench http://127.0.0.1:30000 --concurrency 1,10,256 --goodput ttft:2s
    """
    from moeagent.agent.cli import bench_words as words
    from moeagent.agent.cli.bench_output import Output
    from moeagent.tools.load import Target, WarmUp, bench

    output = Output(as_json=as_json)
    if recompute is not None:
        output.finish(bench.load(recompute))
        return
    if url is None:
        raise InputError("give the server's URL, such as http://127.0.0.1:30000, or --recompute FILE")
    target = Target(
        base_url=words.url(url), api=words.api(api), model=model or "default", verify_tls=not insecure,
        api_key=words.key(api_key_env), ca_file=str(ca_file) if ca_file else None,
    )  # fmt: skip
    plan = bench.BenchPlan(
        concurrencies=words.ladder(concurrency), input_len=input_len, output_len=output_len,
        dataset=words.dataset(dataset), path=dataset_path, requests=prompts, duration_s=duration, rate=rate,
        arrival=words.arrival(arrival), burst_size=burst_size, seed=seed, exact=not natural_stop,
        slo=words.slo(goodput), processes=processes, warmup=WarmUp() if warmup else None, tokenizer=tokenizer,
        max_failed=max_failed, timeout_s=timeout, ids=words.id_range(token_ids), spread=spread, flush=flush,
        detect_api=api == "auto", detect_model=model is None,
    )  # fmt: skip
    ready = bench.prepare(target, plan)
    output.start(ready)
    outcomes = bench.run_ladder(ready, plan, deadline_s=deadline, on_progress=output.progress)
    kept = [output.rung(outcome) for outcome in outcomes]
    if save is not None:
        bench.save(save, [outcome.raw for outcome in kept])
    output.finish([outcome.rung for outcome in kept])
    if any(outcome.rung.completed == 0 for outcome in kept):
        raise typer.Exit(NO_RESULT)
