"""The built-in catalogues are valid, sourced, and agree with the real parsers."""

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from moeagent.memory.errors import InputError
from moeagent.tools.engines.catalogue import catalogue, env_catalogue, version_key
from moeagent.tools.engines.couplings import couplings
from moeagent.tools.engines.denied import denied_env, denied_flag, deny_list
from moeagent.tools.engines.knobs import parse_dump
from moeagent.tools.engines.log_lines import log_rules

FIXTURES = Path(__file__).parents[2] / "fixtures" / "engines"
ENGINES = ("sglang", "vllm", "llamacpp")


@pytest.mark.parametrize("engine", ENGINES)
def test_names_are_unique_and_every_flag_has_a_source(engine: str) -> None:
    flags = catalogue(engine).flags
    names = [flag.name for flag in flags]
    assert len(names) == len(set(names))
    assert [
        flag.name for flag in flags if flag.kind != "bool" and flag.name in ("--tp-size",)
    ] or engine != "sglang"
    assert all(flag.source for flag in flags if flag.unread or flag.deprecated)


@pytest.mark.parametrize("engine", ENGINES)
def test_versions_are_ordered_oldest_first(engine: str) -> None:
    versions = catalogue(engine).versions
    assert list(versions) == sorted(versions, key=version_key)


def test_the_sglang_catalogue_has_the_flags_of_the_real_parser() -> None:
    version, knobs = parse_dump((FIXTURES / "sglang-0.5.9-parser.txt").read_text())
    listed = {name: k for k in catalogue("sglang").knobs(version) for name in (k.name, *k.aliases)}
    assert len(knobs) == len(catalogue("sglang").knobs(version))
    assert [k.name for k in knobs if k.kind != listed[k.name].kind] == []
    differing = [k.name for k in knobs if k.choices != listed[k.name].choices]
    assert differing == ["--tool-call-parser"]  # filled while it is imported; no knob of a campaign


def test_the_vllm_catalogue_knows_every_flag_of_the_real_parser() -> None:
    _, knobs = parse_dump((FIXTURES / "vllm-0.32.0-parser.txt").read_text())
    known = catalogue("vllm")
    assert [knob.name for knob in knobs if known.entry(knob.name) is None] == []


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("0.5.9", "0.5.9"), ("0.5.9.post1", "0.5.9"), ("0.5.12", "0.5.9"), ("0.4.1", "0.5.8"), (None, "0.5.23")],
)
def test_an_unknown_version_takes_the_nearest_older_one(asked: str | None, nearest: str) -> None:
    assert catalogue("sglang").nearest_version(asked) == nearest


def test_a_renamed_flag_is_missing_from_the_newer_version() -> None:
    names = {knob.name for knob in catalogue("sglang").knobs("0.5.23")}
    assert "--cuda-graph-max-bs" not in names
    assert "--cuda-graph-max-bs-decode" in names


def test_flags_that_nothing_reads_are_marked() -> None:
    knobs = {knob.name: knob for knob in catalogue("sglang").knobs("0.5.9")}
    assert knobs["--num-continuous-decode-steps"].status == "unread"


def test_an_engine_without_a_catalogue_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no flag catalogue"):
        catalogue("trtllm")


def test_environment_variables_are_typed_and_none_holds_a_secret_or_a_path() -> None:
    names = {entry.name for engine in ENGINES for entry in env_catalogue(engine)}
    assert {
        "NCCL_MIN_NCHANNELS",
        "NCCL_P2P_LEVEL",
        "SGLANG_ENABLE_JIT_DEEPGEMM",
        "VLLM_USE_DEEP_GEMM",
    } <= names
    assert not [n for n in names if n.endswith(("_KEY", "_TOKEN", "_PATH", "_DIR")) or denied_env(n)]


def test_every_rule_speaks_about_flags_that_exist() -> None:
    for rule in couplings():
        known = catalogue(rule.engine)
        assert set(rule.versions) <= {*known.versions, "*"}
        for name in rule.subjects():
            positive = "--" + name[5:] if name.startswith("--no-") else name
            assert not name.startswith("-") or known.entry(name) or known.entry(positive), (
                rule.message,
                name,
            )


def test_every_adjusted_line_sets_a_flag_that_exists() -> None:
    for rule in log_rules().adjusted:
        for flag in rule.set:
            assert not flag.startswith("-") or catalogue(rule.engine).entry(flag), flag


def test_data_files_name_their_source() -> None:
    for path in (files("moeagent.tools.engines") / "data").iterdir():
        if path.name.endswith(".toml") and path.name != "couplings.toml":
            assert tomllib.loads(path.read_text())["source"], path.name


@pytest.mark.parametrize(
    ("engine", "flag", "refused"),
    [
        ("sglang", "--delete-ckpt-after-loading", True),
        ("sglang", "--delete-ckpt", True),
        ("sglang", "--trust-remote-code", True),
        ("sglang", "--host", True),
        ("vllm", "--api_key", True),
        ("vllm", "--speculative-config.model", False),
        ("llamacpp", "-hf", True),
        ("llamacpp", "--tools", True),
        ("sglang", "--dist-init-addr", True),
        ("sglang", "--grpc-mode", True),
        ("sglang", "--custom-weight-loader", True),
        ("sglang", "--modelopt-export-path", True),
        ("sglang", "--nccl-port", False),
        ("vllm", "--uds", True),
        ("vllm", "--master-addr", True),
        ("vllm", "--allowed-origins", True),
        ("vllm", "--otlp-traces-endpoint", True),
        ("vllm", "--master", True),
        ("sglang", "--tp-size", False),
        ("sglang", "--model-impl", False),
        ("sglang", "--log-level", False),
    ],
)
def test_dangerous_flags_are_refused_under_every_spelling(engine: str, flag: str, refused: bool) -> None:
    assert (denied_flag(engine, flag) is not None) is refused


def test_only_allowable_flags_can_be_allowed() -> None:
    assert denied_flag("sglang", "--trust-remote-code", allow=("--trust-remote-code",)) is None
    assert denied_flag("sglang", "--host", allow=("--host",)) is not None
    assert all(entry.reason for entry in (*deny_list().flag, *deny_list().env))


@pytest.mark.parametrize("name", ["LLAMA_ARG_HOST", "VLLM_SERVER_DEV_MODE", "NCCL_PROFILER_PLUGIN"])
def test_variables_that_expose_or_run_something_are_refused(name: str) -> None:
    assert denied_env(name)
