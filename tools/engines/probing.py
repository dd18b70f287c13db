"""Asking an installed engine what it is and what it accepts."""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePosixPath

from moeagent.memory.errors import HostError, RemoteError
from moeagent.memory.records import EngineFacts, Knob
from moeagent.tools.engines.catalogue import catalogue
from moeagent.tools.engines.knobs import (
    enrich,
    parse_argparse_help,
    parse_dump,
    parse_llama_help,
    parse_version,
)
from moeagent.tools.engines.probe_cache import ProbeCache
from moeagent.tools.engines.protocol import Engine, EngineInstall, Probe
from moeagent.tools.hosts.protocol import Command, CommandResult, Host

PARSER, HELP, VERSION = "engine-parser", "engine-help", "engine-version"
INSTALLED = "engine-installed"
_VERSION_SCRIPT = "import sys; from importlib import metadata; print(metadata.version(sys.argv[1]))"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
"""A variable of `env`; its value may end in the engine's name, such as PYTHONPATH=/opt/vllm."""
TIMED_OUT = 124
"""Exit status that stands for a probe without an end, as of `timeout`."""
_IMPORT_S = 180.0
"""Importing an engine from a cold disk takes up to two minutes."""


def python_probes(
    engine: str, install: EngineInstall, default: tuple[str, ...], *, help_flag: str = "--help"
) -> tuple[Probe, ...]:
    """For an engine in Python: its own interpreter dumps its own parser; --help only where that fails."""
    prefix = install.command or default
    python = (*prefix[: install.outside], *interpreter(prefix[install.outside :]))
    script = (files("moeagent.tools.engines") / "dump_parser.py").read_text()
    installed = Command((*python, "-c", _VERSION_SCRIPT, engine), dict(install.env), repeatable=True)
    dump = Command((*python, "-c", script, engine), dict(install.env), repeatable=True)
    help_text = Command((*prefix, help_flag), {**install.env, "COLUMNS": "200"}, repeatable=True)
    return (
        Probe(INSTALLED, installed),
        Probe(PARSER, dump, timeout_s=_IMPORT_S, cached_by=INSTALLED),
        Probe(HELP, help_text, timeout_s=_IMPORT_S, unless=PARSER),
    )


def binary_probes(install: EngineInstall, default: tuple[str, ...]) -> tuple[Probe, ...]:
    """For a compiled engine: --help and --version."""
    prefix = install.command or default
    env = dict(install.env)
    return (
        Probe(HELP, Command((*prefix, "--help"), env, repeatable=True)),
        Probe(VERSION, Command((*prefix, "--version"), env, repeatable=True)),
    )


def interpreter(prefix: tuple[str, ...]) -> tuple[str, ...]:
    """The words that start the Python which a launch prefix uses; wrappers before it stay in front.

    `docker exec box python3 -m sglang.launch_server` gives `docker exec box python3`;
    `/opt/venv/bin/vllm serve` gives `/opt/venv/bin/python`; a bare `vllm serve` gives `python3`.
    """
    for index, word in enumerate(prefix):
        if _ASSIGNMENT.match(word):
            continue
        name = PurePosixPath(word).name
        if re.fullmatch(r"python[\d.]*", name):
            return prefix[: index + 1]
        if name in ("vllm", "sglang"):
            python = str(PurePosixPath(word).parent / "python") if "/" in word else "python3"
            return (*prefix[:index], python)
    return ("python3",)


def run_probes(
    host: Host, probes: tuple[Probe, ...], *, cache: ProbeCache | None = None
) -> dict[str, CommandResult]:
    """Runs the probes in order; a needless one is left out, a known answer comes from the cache.

    Raises RemoteError when the connection breaks.
    """
    results: dict[str, CommandResult] = {}
    for probe in probes:
        earlier = results.get(probe.unless) if probe.unless else None
        if earlier is not None and earlier.exit_code == 0:
            continue
        version = results.get(probe.cached_by) if probe.cached_by else None
        if cache is None or version is None or version.exit_code != 0:
            results[probe.name] = _run(host, probe)
        else:
            key = cache.key(host.name, probe, version)
            results[probe.name] = cache.get(key) or cache.keep(key, _run(host, probe))
    return results


def _run(host: Host, probe: Probe) -> CommandResult:
    """A probe that takes too long is an answer too: nothing is known."""
    try:
        return host.run(probe.command, timeout_s=probe.timeout_s)
    except RemoteError:
        raise
    except HostError as error:
        return CommandResult(TIMED_OUT, b"", str(error).encode())


def read_knobs(
    host: Host, install: EngineInstall, engine: Engine, *, cache: ProbeCache | None = None
) -> EngineFacts:
    """The installed engine by its own word."""
    return engine.facts(run_probes(host, engine.probes(install), cache=cache), install)


def python_facts(engine: str, results: Mapping[str, CommandResult], install: EngineInstall) -> EngineFacts:
    """Parser dump, else --help, else the catalogue of that version."""
    dumped, knobs = parse_dump(text_of(results.get(PARSER)))
    version = install.version or dumped
    if knobs:
        return _facts(engine, version, knobs, "parser")
    asked = results.get(HELP)
    if asked is not None and asked.exit_code == 0:
        knobs = parse_argparse_help(text_of(asked))
    installed = results.get(INSTALLED)
    if installed is not None and installed.exit_code == 0:
        version = version or parse_version(installed.stdout.decode(errors="replace"))
    return _facts(engine, version, knobs, "help")


def binary_facts(engine: str, results: Mapping[str, CommandResult], install: EngineInstall) -> EngineFacts:
    """--help, else the catalogue."""
    asked = results.get(HELP)
    knobs = parse_llama_help(text_of(asked)) if asked is not None and asked.exit_code == 0 else ()
    return _facts(engine, install.version or parse_version(text_of(results.get(VERSION))), knobs, "help")


def answered(results: Mapping[str, CommandResult]) -> bool:
    """True when the engine answered at least one probe, which means that it is installed."""
    return any(
        result.exit_code == 0 or (name == PARSER and result.exit_code == 3)
        for name, result in results.items()
    )


def text_of(result: CommandResult | None) -> str:
    """Both streams as text: llama-server writes its version to standard error."""
    if result is None:
        return ""
    return (result.stdout + b"\n" + result.stderr).decode(errors="replace")


def _facts(engine: str, version: str | None, knobs: tuple[Knob, ...], source: str) -> EngineFacts:
    known = catalogue(engine)
    if knobs:
        return EngineFacts(engine=engine, version=version, knobs=enrich(knobs, known, version), source=source)
    nearest = known.nearest_version(version)
    return EngineFacts(
        engine=engine, version=version, knobs=known.knobs(version), source=f"catalogue {nearest}"
    )
