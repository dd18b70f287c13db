"""`moeagent run`."""

from typing import Annotated

import typer

from moeagent.agent.cli import wanted as w
from moeagent.agent.cli.options import (
    DEFAULT_RUNS,
    ApproveMode,
    AsJson,
    JsonEvents,
    PauseAfter,
    PolicyFile,
    RunsRoot,
)


def command(
    goal: w.Goal = "",
    host: w.HostName = "",
    engine: w.EngineName = "",
    model: w.Model = "",
    flag: w.Flags = None,
    env: w.Env = None,
    engine_command: w.EngineCommand = "",
    concurrency: w.Concurrency = "",
    input_len: w.InputLen = None,
    output_len: w.OutputLen = None,
    slo: w.Slo = None,
    limit: w.Limits = None,
    llm: w.LlmUrl = "",
    llm_model: w.LlmModel = "",
    own: w.OwnIdeas = None,
    approve: ApproveMode = "",
    policy: PolicyFile = None,
    accept_new: w.AcceptNew = False,
    ssh_config: w.SshConfig = "",
    sim_seed: w.SimSeed = None,
    sim_model: w.SimModel = "",
    config: w.SettingsFile = None,
    run_id: Annotated[str, typer.Option(help="Name of the run's folder.")] = "",
    pause_after: PauseAfter = None,
    as_json: AsJson = False,
    json_events: JsonEvents = False,
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
    from moeagent.agent.show.session import watched

    said = w.Wanted(
        goal=goal, host=host, engine=engine, model=model, flag=flag, env=env,
        engine_command=engine_command, concurrency=concurrency, input_len=input_len, output_len=output_len,
        slo=slo, limit=limit, llm=llm, llm_model=llm_model, own=own, approve=approve, policy=policy,
        accept_new=accept_new, ssh_config=ssh_config, sim_seed=sim_seed, sim_model=sim_model,
        config=config,
    )  # fmt: skip
    part, output = parse.pause_after(pause_after or []), parse.output(as_json, json_events)
    folder = create(said.settings(), runs, run_id or None)
    with watched(folder, runs, output=output) as watch:
        resume(folder, runs, {}, watch, ask_engineer, pause_after=part)
