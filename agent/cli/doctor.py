"""`moeagent doctor`: what works, what is missing, what to do."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from moeagent.tools.survey import Survey


def command(
    host: Annotated[str, typer.Option(help="local, or a host as ssh knows it, such as user@gpu1")] = "local",
    engine: Annotated[
        str | None, typer.Option(help="sglang, vllm or llamacpp; all three when left out")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Path of the model on that host")] = None,
    engine_command: Annotated[
        str | None, typer.Option(help="How the engine is started there, up to its flags")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts and findings as JSON")] = False,
) -> None:
    """Survey a host: what works, what is missing, what to do. Nothing is changed on it.

    Example: moeagent doctor --host user@gpu1 --engine sglang --model /models/GLM-5-NVFP4
    """
    import json
    import shlex

    from moeagent.tools.engines.protocol import EngineInstall
    from moeagent.tools.engines.registry import ENGINES, default_install, engine_by_name
    from moeagent.tools.hosts.factory import open_host
    from moeagent.tools.survey import as_error, parse_survey, run_survey

    engines = [engine_by_name(engine)] if engine else list(ENGINES)
    machine = open_host(host)
    surveys = []
    try:
        for wanted in engines:
            install = default_install(wanted.name, local=host == "local")
            if engine_command:
                install = EngineInstall(command=tuple(shlex.split(engine_command)))
            outputs = run_survey(machine, wanted, install, model)
            surveys.append(
                parse_survey(
                    outputs,
                    engine=wanted,
                    install=install,
                    model=model,
                    host_name=host,
                    simulated=machine.simulated,
                )
            )
    finally:
        machine.close()
    if as_json:
        typer.echo(json.dumps([survey.model_dump(mode="json") for survey in surveys], ensure_ascii=False))
    else:
        _print(surveys)
    errors = [as_error(survey.findings) for survey in surveys]
    worst = next((error for error in errors if error is not None), None)
    if worst is not None and (engine or all(errors)):
        raise typer.Exit(worst.exit_code)


def _print(surveys: "list[Survey]") -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    facts = surveys[0].host
    gpus = ", ".join(f"{gpu.name} {gpu.memory_mib // 1024} GiB" for gpu in facts.gpus) or "none"
    console.print(f"host     {facts.name}: {facts.cpu_cores} cores, {facts.ram_gib} GiB of memory")
    console.print(f"GPUs     {gpus}")
    if facts.driver:
        console.print(f"driver   {facts.driver}, CUDA {facts.cuda}")
    console.print(f"disk     {facts.disk_free_gib} GiB free")
    for survey in surveys:
        _print_engine(console, survey)
    told: set[str] = set()
    for finding in (finding for survey in surveys for finding in survey.findings):
        if finding.line() not in told:
            told.add(finding.line())
            mark, style = _MARKS[finding.severity]
            console.print(f"{mark} {finding.what}\n    {finding.consequence}. {finding.action}.", style=style)
    if not told:
        console.print("Nothing stands in the way of a campaign.", style="green")


def _print_engine(console: "object", survey: "Survey") -> None:
    from rich.console import Console

    assert isinstance(console, Console)
    missing = any(f.area == "engine" and f.severity == "fatal" for f in survey.findings)
    state = (
        "missing"
        if missing
        else f"{survey.engine.version or 'version unknown'}, flags by {survey.engine.source}"
    )
    console.print(f"engine   {survey.engine.engine}: {state}", style="yellow" if missing else "green")
    if survey.model is not None and survey.model.architecture:
        size = f", {survey.model.size_gib} GiB" if survey.model.size_gib else ""
        console.print(f"model    {survey.model.path}: {survey.model.architecture}{size}")


_MARKS = {"fatal": ("[x]", "red"), "warning": ("[!]", "yellow"), "info": ("[i]", "dim")}
