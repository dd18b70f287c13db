"""`moeagent predict`: memory, speed, limits and risk of a configuration, before any launch."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moeagent.agent.cli.options import AsJson
from moeagent.memory.errors import InputError

if TYPE_CHECKING:
    from moeagent.memory.records import EngineFacts, ServerConfig
    from moeagent.tools.predict.records import Machine, ModelShape, Unknown

Gpu = Annotated[
    str | None, typer.Option(help='Such as "8x RTX PRO 6000", or "4x Foo 96GB" for memory alone.')
]
ModelConfig = Annotated[
    Path | None, typer.Option(exists=True, help="config.json of the model, or the folder that holds it.")
]
HostName = Annotated[str | None, typer.Option("--host", help="Survey this host instead: user@gpu1 or local.")]
ModelPath = Annotated[str | None, typer.Option("--model", help="The model's path on the host.")]
Engine = Annotated[str, typer.Option(help="sglang, vllm or llamacpp.")]
Flag = Annotated[list[str] | None, typer.Option(help="A flag of the engine, such as '--tp-size 8'. Repeat.")]
Env = Annotated[list[str] | None, typer.Option(help="An environment variable, NAME=VALUE. Repeat.")]
Against = Annotated[
    list[str] | None,
    typer.Option(
        help="Compare with a change: '--ep-size 8', 'NAME=VALUE', or 'no --flag' to drop it. Repeat."
    ),
]
Concurrency = Annotated[str, typer.Option(help="Concurrencies, with commas.")]
Length = Annotated[int, typer.Option(min=1, help="Tokens of each prompt or answer.")]
Kernels = Annotated[
    bool, typer.Option("--kernels", help="Also look up measured kernels (moeagent[kernels]).")
]
Version = Annotated[
    str | None, typer.Option(help="Check flags as this version has them, such as 0.5.9; newest by default.")
]


def command(
    gpu: Gpu = None,
    model_config: ModelConfig = None,
    host: HostName = None,
    model: ModelPath = None,
    engine: Engine = "sglang",
    flag: Flag = None,
    env: Env = None,
    against: Against = None,
    concurrency: Concurrency = "1,10,256,1024",
    input_len: Length = 1024,
    output_len: Length = 1024,
    kernels: Kernels = False,
    engine_version: Version = None,
    as_json: AsJson = False,
) -> None:
    """Predict memory and speed of a configuration, or of two, before any launch.

    Prints the memory table of one GPU with its verdict, tok/s, TTFT and TPOT at each concurrency with the
    range that they are expected in, what limits each, and what cannot work. Needs no GPU and no host.

    Example: moeagent predict --gpu "8x RTX PRO 6000" --model-config config.json --flag "--tp-size 8"
    """
    from moeagent.agent.cli import parse
    from moeagent.agent.cli.predict_output import show
    from moeagent.agent.cli.predict_rules import by_the_engine, catalogued
    from moeagent.memory.records import ServerConfig, Workload
    from moeagent.tools.engines.validate import canonical
    from moeagent.tools.predict.comparison import compare

    workload = Workload(input_len=input_len, output_len=output_len, ladder=parse.ladder(concurrency))
    machine, shape, facts = _subject(gpu, model_config, host, model, engine)
    facts = facts if facts and not engine_version else catalogued(engine, engine_version)
    given = ServerConfig(engine=engine, flags=parse.flags(flag or []), env=_variables(env or []))
    first = canonical(given, facts)
    second = canonical(_changed(first, against), facts) if against else None
    folder = _folder(model_config) if kernels and model_config else None
    answer = compare(first, second, machine, shape, workload, model_folder=folder)
    answer = by_the_engine(answer, facts, machine, shape)
    if as_json:
        typer.echo(answer.model_dump_json())
    else:
        show(answer)


def _subject(
    gpu: str | None, model_config: Path | None, host: str | None, model: str | None, engine: str
) -> tuple["Machine | Unknown", "ModelShape | Unknown", "EngineFacts | None"]:
    """The machine and the model, from words and a file, from a surveyed host, or one of each.

    The engine's own word on its flags comes from a surveyed host only.
    """
    from moeagent.tools.predict.machine import machine_from_name

    machine = machine_from_name(gpu) if gpu else None
    shape = _read_model(model_config) if model_config else None
    if machine is not None and shape is not None:
        return machine, shape, None
    if host is None or (shape is None and model is None):
        lacking = "--gpu" if machine is None else "--model-config"
        raise InputError(f"give {lacking}, or --host with --model to survey a host")
    surveyed = _survey(host, model, engine)
    return machine or surveyed[0], shape or surveyed[1], surveyed[2]


def _survey(
    host: str, model: str | None, engine: str
) -> tuple["Machine | Unknown", "ModelShape | Unknown", "EngineFacts"]:
    from moeagent.memory.records import ModelFacts
    from moeagent.tools.engines.registry import default_install, engine_by_name
    from moeagent.tools.hosts.factory import open_host
    from moeagent.tools.predict.machine import machine_from_facts
    from moeagent.tools.predict.model_config import model_from_facts
    from moeagent.tools.survey.survey import parse_survey, run_survey

    wanted = engine_by_name(engine)
    install = default_install(wanted.name, local=host == "local")
    machine = open_host(host)
    try:
        outputs = run_survey(machine, wanted, install, model)
    finally:
        machine.close()
    survey = parse_survey(
        outputs, engine=wanted, install=install, model=model, host_name=host, simulated=machine.simulated
    )
    shape = model_from_facts(survey.model or ModelFacts(path=model or ""))
    return machine_from_facts(survey.host), shape, survey.engine


def _read_model(path: Path) -> "ModelShape | Unknown":
    from moeagent.tools.predict.model_config import model_from_config

    folder = _folder(path)
    config = _read_json(path if path.is_file() else folder / "config.json")
    extra = folder / "hf_quant_config.json"
    if extra.is_file():
        config["hf_quant_config"] = _read_json(extra)
    return model_from_config(
        config, name=folder.name if path.name == "config.json" or path.is_dir() else path.stem
    )


def _folder(path: Path) -> Path:
    return path.resolve() if path.is_dir() else path.resolve().parent


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a model's config.json: it holds no JSON object")
    return content


def _variables(words: list[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    wrong = next((name for name, equals, _ in pairs if not equals or not name), None)
    if wrong is not None:
        raise InputError(f"--env {wrong!r}: write NAME=VALUE, such as NCCL_MIN_NCHANNELS=8")
    return {name: value for name, _, value in pairs}


def _changed(config: "ServerConfig", words: list[str]) -> "ServerConfig":
    from moeagent.agent.cli import parse
    from moeagent.memory.records import ConfigChange

    dropped = [word.removeprefix("no ").strip() for word in words if word.startswith("no ")]
    rest = [word for word in words if not word.startswith("no ")]
    change = ConfigChange(
        set_flags=parse.flags([word for word in rest if word.startswith("-")]),
        remove_flags=tuple(dropped),
        set_env=_variables([word for word in rest if not word.startswith("-")]),
    )
    return config.apply(change)
