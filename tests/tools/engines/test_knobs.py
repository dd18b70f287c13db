"""What an engine accepts, read from the real outputs of real parsers."""

from pathlib import Path

from moeagent.memory.records import Knob
from moeagent.tools.engines.catalogue import catalogue
from moeagent.tools.engines.dump_parser import MARKER
from moeagent.tools.engines.knobs import (
    enrich,
    parse_argparse_help,
    parse_dump,
    parse_llama_help,
    parse_version,
)
from moeagent.tools.engines.llamacpp import LlamacppEngine
from moeagent.tools.engines.probing import HELP, PARSER, VERSION, answered, interpreter
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.sglang import SglangEngine
from moeagent.tools.engines.vllm import VllmEngine
from moeagent.tools.hosts.protocol import CommandResult

FIXTURES = Path(__file__).parents[2] / "fixtures" / "engines"


def fixture(name: str) -> str:
    return (FIXTURES / name).read_text()


def by_name(knobs: tuple[Knob, ...]) -> dict[str, Knob]:
    return {knob.name: knob for knob in knobs}


def test_a_parser_dump_gives_version_types_and_choices() -> None:
    version, knobs = parse_dump(fixture("sglang-0.5.9-parser.txt"))
    assert version == "0.5.9"
    assert len(knobs) == 331
    named = by_name(enrich(knobs, catalogue("sglang"), version))
    assert named["--tp-size"].aliases == ("--tensor-parallel-size",)
    assert named["--mem-fraction-static"].kind == "float"
    assert named["--disable-radix-cache"].kind == "bool"
    assert named["--moe-a2a-backend"].choices is not None
    assert "flashinfer" in named["--moe-a2a-backend"].choices


def test_the_help_of_the_same_parser_gives_the_same_names_and_choices() -> None:
    _, dumped = parse_dump(fixture("sglang-0.5.9-parser.txt"))
    helped = by_name(parse_argparse_help(fixture("sglang-0.5.9-help.txt")))
    assert {knob.name for knob in dumped} == set(helped)
    for knob in dumped:
        same = helped[knob.name]
        assert set(same.aliases) == set(knob.aliases)
        assert same.choices == knob.choices
        assert (same.kind == "bool") is (knob.kind == "bool")


def test_a_real_vllm_dump_and_help() -> None:
    version, knobs = parse_dump(fixture("vllm-0.32.0-parser.txt"))
    named = by_name(knobs)
    assert version == "0.32.0+cpu"
    assert named["--enable-prefix-caching"].aliases == ("--no-enable-prefix-caching",)
    assert named["--compilation-config"].kind == "json"
    helped = by_name(parse_argparse_help(fixture("vllm-0.32.0-help-start.txt")))
    assert len(helped) > 80
    assert all((knob.kind == "bool") is (named[name].kind == "bool") for name, knob in helped.items())
    assert set(helped) <= set(named)


def test_noise_before_the_marker_does_not_matter() -> None:
    line = fixture("vllm-0.32.0-parser.txt").splitlines()[-1]
    assert parse_dump(f"WARNING: something\n{line}\n")[0] == "0.32.0+cpu"


def test_output_without_a_dump_gives_nothing() -> None:
    assert parse_dump("Traceback (most recent call last):\nImportError: no module") == (None, ())
    assert parse_dump(MARKER + '{"version": "1.0", "options": null}') == ("1.0", ())
    assert parse_argparse_help("command not found") == ()
    assert parse_llama_help("error: invalid argument: --help") == ()


def test_llama_help_in_the_layout_of_llama_server() -> None:
    text = (
        "----- common params -----\n\n"
        "-h,    --help, --usage                  print usage and exit\n"
        "-t,    --threads N                      number of CPU threads to use (default: -1)\n"
        "                                        (env: LLAMA_ARG_THREADS)\n"
        "-fa,   --flash-attn [on|off|auto]       set Flash Attention use (default: 'auto')\n"
        "-sm,   --split-mode {none,layer,row,tensor}\n"
        "                                        how to split the model across multiple GPUs\n"
        "-ctk,  --cache-type-k TYPE              KV cache data type for K\n"
        "                                        allowed values: f32, f16, q8_0\n"
        "                                        (default: f16)\n"
        "--poll <0...100>                        use polling level to wait for work (default: 50)\n"
        "--swa-full                              use full-size SWA cache (default: false)\n"
        "-kvo,  --kv-offload, -nkvo, --no-kv-offload\n"
        "                                        whether to enable KV cache offloading (default: enabled)\n"
    )
    named = by_name(parse_llama_help(text))
    assert named["--threads"].default == "-1"
    assert named["--flash-attn"].choices == ("on", "off", "auto")
    assert named["--split-mode"].choices == ("none", "layer", "row", "tensor")
    assert named["--cache-type-k"].choices == ("f32", "f16", "q8_0")
    assert named["--poll"].choices is None
    assert named["--swa-full"].kind == "bool"
    assert named["--kv-offload"].aliases == ("-kvo", "-nkvo", "--no-kv-offload")
    assert named["--kv-offload"].kind == "bool"
    assert "--help" not in named


def test_the_catalogue_adds_what_the_parser_does_not_say() -> None:
    version, knobs = parse_dump(fixture("sglang-0.5.9-parser.txt"))
    named = by_name(enrich(knobs, catalogue("sglang"), version))
    assert named["--num-continuous-decode-steps"].status == "unread"
    assert named["--mem-fraction-static"].help


def test_versions_as_engines_print_them() -> None:
    assert parse_version("version: 6423 (c4510dc9)\nbuilt with cc") == "6423"
    assert parse_version("vllm 0.25.1") == "0.25.1"
    assert parse_version("") is None
    assert parse_version("Compile for a version to be named") is None


def test_the_interpreter_behind_a_launch_prefix() -> None:
    assert interpreter(("docker", "exec", "box", "python3", "-m", "sglang.launch_server")) == (
        "docker", "exec", "box", "python3",
    )  # fmt: skip
    assert interpreter(("/opt/venv/bin/vllm", "serve")) == ("/opt/venv/bin/python",)
    assert interpreter(("numactl", "-N", "0", "vllm", "serve")) == ("numactl", "-N", "0", "python3")
    assert interpreter(("conda", "run", "-n", "x", "python3.12", "-m", "a")) == (
        "conda",
        "run",
        "-n",
        "x",
        "python3.12",
    )
    assert interpreter(("env", "PYTHONPATH=/opt/vllm", "python3", "-m", "vllm.entrypoints.cli.main")) == (
        "env",
        "PYTHONPATH=/opt/vllm",
        "python3",
    )
    assert interpreter(("./start.sh",)) == ("python3",)


def result(code: int, text: str = "") -> CommandResult:
    return CommandResult(code, text.encode(), b"")


def test_facts_fall_back_from_parser_to_help_to_catalogue() -> None:
    engine, install = SglangEngine(), EngineInstall()
    dump, help_text = fixture("sglang-0.5.9-parser.txt"), fixture("sglang-0.5.9-help.txt")
    assert engine.facts({PARSER: result(0, dump)}, install).source == "parser"
    told = engine.facts({PARSER: result(4), HELP: result(0, help_text)}, EngineInstall(version="0.5.9"))
    assert (told.source, len(told.knobs), told.version) == ("help", 331, "0.5.9")
    assert by_name(told.knobs)["--tp-size"].kind == "int"
    version_only = MARKER + '{"version": "0.5.9", "options": null}'
    fallen = engine.facts({PARSER: result(3, version_only), HELP: result(1)}, install)
    assert (fallen.source, fallen.version, len(fallen.knobs)) == ("catalogue 0.5.9", "0.5.9", 331)


def test_an_engine_has_answered_when_one_probe_succeeded() -> None:
    assert answered({PARSER: result(3), HELP: result(1)})
    assert answered({HELP: result(0), VERSION: result(1)})
    assert not answered({PARSER: result(4), HELP: result(127)})


def test_probes_keep_the_wrapper_and_its_environment() -> None:
    install = EngineInstall(command=("docker", "exec", "box", "vllm", "serve"), env={"A": "1"})
    installed, parser, help_probe = VllmEngine().probes(install)
    assert parser.command.argv[:5] == ("docker", "exec", "box", "python3", "-c")
    assert help_probe.command.argv == ("docker", "exec", "box", "vllm", "serve", "--help=all")
    assert help_probe.unless == parser.name
    assert parser.cached_by == installed.name
    assert parser.command.env["A"] == "1"
    assert [p.command.argv[-1] for p in LlamacppEngine().probes(EngineInstall())] == ["--help", "--version"]
