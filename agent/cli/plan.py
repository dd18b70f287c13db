"""`moeagent plan`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moeagent.agent.cli import wanted as w
from moeagent.agent.cli.options import DEFAULT_RUNS, ApproveMode, AsJson, PolicyFile, RunsRoot

if TYPE_CHECKING:
    from moeagent.agent.planning import CampaignPlan
    from moeagent.agent.settings import CampaignSettings

Ideas = Annotated[int, typer.Option(min=0, help="How many of the first ideas to show.")]
PLAN = "plan"
"""Stands for the run, which does not exist."""
Offline = Annotated[bool, typer.Option("--offline", help="Do not survey the host: nothing is predicted.")]


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
    ideas: Ideas = 5,
    offline: Offline = False,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Print every command that `moeagent run` with the same options would run, and launch nothing.

    For the baseline and the first ideas of the playbook: the server's command with its environment, load and
    stop, what stands against it, predicted memory, effect, risk, time and cost, and what the approval policy
    says. Only the survey runs on the host; a language model is not asked.

    Example: moeagent plan --host user@gpu1 --engine sglang --model /models/GLM-5-NVFP4 --approve risky
    """
    said = w.Wanted(
        goal=goal, host=host, engine=engine, model=model, flag=flag, env=env,
        engine_command=engine_command, concurrency=concurrency, input_len=input_len, output_len=output_len,
        slo=slo, limit=limit, llm=llm, llm_model=llm_model, own=own, approve=approve, policy=policy,
        accept_new=accept_new, ssh_config=ssh_config, sim_seed=sim_seed, sim_model=sim_model,
        config=config,
    )  # fmt: skip
    plan = planned(said.settings(), runs, ideas, offline=offline)
    if as_json:
        typer.echo(plan.model_dump_json())
    else:
        from moeagent.agent.show.plan import show_plan
        from moeagent.agent.show.text import console

        show_plan(plan, console())


def planned(settings: "CampaignSettings", runs: Path, ideas: int, *, offline: bool) -> "CampaignPlan":
    """The plan of these settings; a findings store is read where there is one, and none is made."""
    import tempfile

    from moeagent.agent.campaign import build_loop
    from moeagent.agent.events import Events
    from moeagent.agent.findings_index import STORE
    from moeagent.agent.interrupt import StopRequest
    from moeagent.agent.planning import plan_of, take_stock
    from moeagent.agent.workbench import Workbench
    from moeagent.agent.worlds.run_in_memory import MemoryFolder, memory_tape

    with tempfile.TemporaryDirectory(prefix="moeagent-plan-") as empty:
        root = runs if (runs / STORE).is_file() else Path(empty)
        stop, events = StopRequest(), Events()
        workbench = Workbench(settings, PLAN, root, events, stop, None)
        try:
            loop = build_loop(settings, memory_tape(), MemoryFolder(PLAN), workbench, stop, events)
            problems = take_stock(loop, offline=offline)
            return plan_of(loop, ideas, problems)
        finally:
            workbench.close()
