"""`moeagent doctor`: what works, what is missing, what to do."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunsRoot

if TYPE_CHECKING:
    from rich.console import Console

    from moeagent.tools.survey.findings import Finding
    from moeagent.tools.survey.survey import Survey

HostName = Annotated[
    str | None, typer.Option(help="local, sim, user@host or a name of ~/.ssh/config; else as moeagent.toml.")
]
EngineName = Annotated[str | None, typer.Option(help="sglang, vllm or llamacpp; all when left out.")]
Model = Annotated[str | None, typer.Option(help="Path of the model on that host.")]
EngineCommand = Annotated[str | None, typer.Option(help="How the engine is started, up to its flags.")]
Run = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="Check this run's folder in place of a host.")
]
Salvage = Annotated[bool, typer.Option("--salvage", help="Make a new run of what is sound in a damaged one.")]
Config = Annotated[Path | None, typer.Option("--config", help="Settings file; moeagent.toml by default.")]


def command(
    run: Run = None,
    host: HostName = None,
    engine: EngineName = None,
    model: Model = None,
    engine_command: EngineCommand = None,
    config: Config = None,
    salvage: Salvage = False,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """Survey a host, or check a run's folder: what works, what is missing, what to do. Nothing is changed.

    Exit codes for a host: 0 a campaign can start; else that of the first thing in its way: 2 model, 3 host,
    4 engine. For a run: 0 it can go on, 6 it is damaged.

    Example: moeagent doctor --host user@gpu1 --engine sglang --model /models/GLM-5-NVFP4
    """
    if run is not None:
        from moeagent.agent.cli.doctor_run import doctor_run

        doctor_run(run, runs, wants_salvage=salvage, as_json=as_json)
        return
    import json
    import shlex

    from moeagent.tools.survey.findings import as_error

    words = shlex.split(engine_command) if engine_command else None
    engines = [engine] if engine else _engines_on(host)
    surveys = [_survey(host, name, model, words, config) for name in engines]
    if as_json:
        typer.echo(json.dumps([survey.model_dump(mode="json") for survey in surveys], ensure_ascii=False))
    else:
        _print(surveys)
    errors = [as_error(survey.findings) for survey in surveys]
    if all(errors):
        raise typer.Exit(next(error.exit_code for error in errors if error is not None))


def _engines_on(host: str | None) -> list[str]:
    from moeagent.tools.engines.registry import ENGINES

    return ["sglang"] if host == "sim" else [engine.name for engine in ENGINES]


def _survey(
    host: str | None, engine_name: str, model: str | None, words: list[str] | None, config: Path | None
) -> "Survey":
    from moeagent.agent.place import open_place
    from moeagent.agent.settings import SETTINGS_FILE, load_settings
    from moeagent.tools.engines.registry import engine_by_name
    from moeagent.tools.survey.survey import parse_survey, run_survey

    engine = engine_by_name(engine_name)
    file = config or (Path(SETTINGS_FILE) if Path(SETTINGS_FILE).is_file() else None)
    wanted: dict[str, Any] = {"engine": {"name": engine.name}}
    wanted |= {"model": model} if model else {}
    wanted["engine"] |= {"command": tuple(words)} if words else {}
    settings = load_settings(file, wanted | ({"host": {"target": host}} if host else {}))
    if not settings.host.target:
        settings = load_settings(file, {**wanted, "host": {"target": "local"}})
    place = open_place(settings, "doctor")
    try:
        install = next(iter(place.installs.values()))
        at = place.model or None
        return parse_survey(
            run_survey(place.host, engine, install, at),
            engine=engine,
            install=install,
            model=at,
            host_name=settings.host.target,
            simulated=place.host.simulated,
        )
    finally:
        place.host.close()


def _print(surveys: "list[Survey]") -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False, soft_wrap=True)
    facts = surveys[0].host
    kinds = Counter(f"{gpu.name} ({gpu.memory_mib / 1024:.0f} GiB)" for gpu in facts.gpus)
    gpus = ", ".join(f"{count} x {kind}" for kind, count in kinds.items()) or "none"
    simulated = " (simulated)" if facts.simulated else ""
    console.print(f"host     {facts.name}{simulated}: {facts.cpu_cores} cores, {facts.ram_gib} GiB of memory")
    console.print(f"GPUs     {gpus}")
    if facts.driver:
        console.print(f"driver   {facts.driver}, CUDA {facts.cuda}")
    console.print(f"disk     {facts.disk_free_gib} GiB free")
    for survey in surveys:
        _print_engine(console, survey)
    shown = _worth_showing(surveys)
    for finding in shown:
        mark, style = _MARKS[finding.severity]
        console.print(f"{mark} {finding.what}\n    {finding.consequence}. {finding.action}.", style=style)
    if not any(finding.severity == "fatal" for finding in shown):
        console.print("Nothing stands in the way of a campaign.", style="green")


def _print_engine(console: "Console", survey: "Survey") -> None:
    known = f"{survey.engine.version or 'version unknown'}, flags by {survey.engine.source}"
    state = known if _installed(survey) else "missing: install it, or name its command with --engine-command"
    style = "green" if _installed(survey) else "yellow"
    console.print(f"engine   {survey.engine.engine}: {state}", style=style)
    if survey.model is not None and survey.model.architecture:
        size = f", {survey.model.size_gib} GiB" if survey.model.size_gib else ""
        console.print(f"model    {survey.model.path}: {survey.model.architecture}{size}")


def _worth_showing(surveys: "list[Survey]") -> "list[Finding]":
    """Each finding once; of several engines only what concerns those that are installed."""
    installed = [survey for survey in surveys if _installed(survey)]
    told: dict[str, Finding] = {}
    for survey in installed or surveys:
        for finding in survey.findings:
            told.setdefault(finding.line(), finding)
    return list(told.values())


def _installed(survey: "Survey") -> bool:
    return not any(f.area == "engine" and f.severity == "fatal" for f in survey.findings)


_MARKS = {"fatal": ("[x]", "red"), "warning": ("[!]", "yellow"), "info": ("[i]", "dim")}
