"""`moeagent run`."""

from pathlib import Path
from typing import Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, ApproveMode, AsJson, PauseAfter, PolicyFile, RunsRoot


def command(
    goal: Annotated[str, typer.Option(help="max-throughput, min-latency, max-goodput or min-cost.")] = "",
    host: Annotated[str, typer.Option(help="local, sim, user@host[:port] or an SSH alias.")] = "",
    engine: Annotated[str, typer.Option(help="sglang, vllm or llamacpp.")] = "",
    model: Annotated[str, typer.Option(help="Path of the model on the host.")] = "",
    flag: Annotated[list[str] | None, typer.Option(help="Baseline flag, such as '--tp-size 8'.")] = None,
    env: Annotated[list[str] | None, typer.Option(help="Baseline variable, such as NCCL_ALGO=Ring.")] = None,
    engine_command: Annotated[str, typer.Option(help="Launch command up to the flags, in one word.")] = "",
    concurrency: Annotated[str, typer.Option(help="The ladder, such as 1,10,256,1024.")] = "",
    input_len: Annotated[int | None, typer.Option(help="Input tokens of each request.")] = None,
    output_len: Annotated[int | None, typer.Option(help="Output tokens of each request.")] = None,
    slo: Annotated[list[str] | None, typer.Option(help="Constraint, such as ttft_p99=2s.")] = None,
    limit: Annotated[list[str] | None, typer.Option(help="Limit, such as experiments=10 or hours=8.")] = None,
    llm: Annotated[str, typer.Option(help="OpenAI-compatible endpoint that proposes.")] = "",
    llm_model: Annotated[str, typer.Option(help="Name of the model at that endpoint.")] = "",
    own: Annotated[
        Path | None, typer.Option("--try", help="TOML file of your own [[idea]]s, tried first.")
    ] = None,
    approve: ApproveMode = "",
    policy: PolicyFile = None,
    accept_new: Annotated[bool, typer.Option("--accept-new", help="Accept an unknown SSH host key.")] = False,
    ssh_config: Annotated[str, typer.Option(help="SSH configuration file.")] = "",
    sim_seed: Annotated[int | None, typer.Option(help="World of the simulated machine.")] = None,
    sim_model: Annotated[str, typer.Option(help="Model of the simulated machine: A or B.")] = "",
    config: Annotated[Path | None, typer.Option(help="Settings file; moeagent.toml if it is here.")] = None,
    run_id: Annotated[str, typer.Option(help="Name of the run's folder.")] = "",
    pause_after: PauseAfter = None,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Optimise an inference server: propose, launch, measure, judge, until the budget ends.

    Without a settings file and without --host, the simulated machine is used, unless this machine has a GPU
    or an engine of its own: then you are asked to choose. Ctrl-C stops at a safe point, stops the server and
    prints the command that goes on.

    Example: moeagent run --goal max-throughput --host user@gpu1 --engine sglang --model /models/GLM-5-NVFP4
    """
    from moeagent.agent.campaign import create, resume
    from moeagent.agent.cli import parse
    from moeagent.agent.cli.ask import ask_engineer
    from moeagent.agent.hosting import decide_host, prepare
    from moeagent.agent.settings import SETTINGS_FILE, load_settings, parse_slo, read_settings_file
    from moeagent.agent.show.session import watched

    path = config or (Path(SETTINGS_FILE) if Path(SETTINGS_FILE).is_file() else None)
    overrides = {
        "host": {
            "target": host or None,
            "accept_new": accept_new or None,
            "ssh_config": ssh_config or None,
        },
        "engine": {"name": engine or None, "command": tuple(engine_command.split()) or None},
        "model": model or None,
        "baseline": {"flags": parse.flags(flag or []), "env": parse.variables(env or [])},
        "workload": {
            "ladder": parse.ladder(concurrency) if concurrency else None,
            "input_len": input_len,
            "output_len": output_len,
        },
        "goal": {
            "name": goal or None,
            "constraints": tuple(c.model_dump() for c in map(parse_slo, slo or [])) or None,
        },
        "llm": {"base_url": llm or None, "model": llm_model or None},
        "sim": {"seed": sim_seed, "model": sim_model or None},
        "idea": tuple(read_settings_file(own).get("idea", ())) if own else None,
        **parse.approval(approve, policy),
        **parse.limits(limit or []),
    }
    part = parse.pause_after(pause_after or [])
    settings = prepare(decide_host(load_settings(path, overrides)))
    folder = create(settings, runs, run_id or None)
    with watched(folder, runs, as_json=as_json) as watch:
        resume(folder, runs, {}, watch, ask_engineer, pause_after=part)
