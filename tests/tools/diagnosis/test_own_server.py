"""Logs that the project's own llama.cpp server writes now, made to fail in each way: each is named right."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from parts.llamacpp import failed_start, free_port, llama_server, tiny_model

from moeagent.memory.records import Diagnosis
from moeagent.tools.diagnosis import diagnose

pytestmark = pytest.mark.part("llamacpp")

ADDRESS_SPACE_KIB = 4_000_000
"""Enough for the server and its tiny model, too little for the contexts asked here."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models"))


def bad_flag(model: Path) -> str:
    return failed_start(model, free_port(), {"--max-num-seqs": 8})[1]


def bad_value(model: Path) -> str:
    return failed_start(model, free_port(), {"--ctx-size": "many"})[1]


def flags_that_exclude_each_other(model: Path) -> str:
    return failed_start(model, free_port(), {"--cache-type-v": "q8_0", "--flash-attn": "off"})[1]


def missing_model(model: Path) -> str:
    return failed_start(model.with_name("nowhere.gguf"), free_port())[1]


def truncated_weights(model: Path) -> str:
    cut = model.with_name("cut.gguf")
    cut.write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    return failed_start(cut, free_port())[1]


def truncated_header(model: Path) -> str:
    cut = model.with_name("header.gguf")
    cut.write_bytes(model.read_bytes()[:100])
    return failed_start(cut, free_port())[1]


def port_in_use(model: Path) -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return failed_start(model, taken.getsockname()[1])[1]


def context_beyond_memory(model: Path) -> str:
    flags = {"--ctx-size": 4_000_000, "--parallel": 1}
    return failed_start(model, free_port(), flags, memory_kib=ADDRESS_SPACE_KIB)[1]


@pytest.mark.parametrize(
    ("fail", "failure_class", "words", "remedy"),
    [
        (bad_flag, "config.invalid_arg", "--max-num-seqs", ("--max-num-seqs", "remove")),
        (bad_value, "config.invalid_arg", "--ctx-size", ("--ctx-size", "remove")),
        (flags_that_exclude_each_other, "config.incompatible", "V cache", ("-fa", "replace")),
        (missing_model, "model.missing_file", "No such file", ("-m", "replace")),
        (truncated_weights, "model.missing_file", "not within the file bounds", ("checkpoint", "action")),
        (truncated_header, "model.missing_file", "failed to read key-value pairs", ("checkpoint", "action")),
        (port_in_use, "host.port_in_use", "couldn't bind", ("--port", "replace")),
        (context_beyond_memory, "oom.kv_pool.startup", "failed to allocate buffer for kv", ("-c", "lower")),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_each_failure_is_named_by_its_cause(
    model: Path, fail: Callable[[Path], str], failure_class: str, words: str, remedy: tuple[str, str]
) -> None:
    log = fail(model)
    answer = diagnose(log, engine="llamacpp")
    assert answer.failure_class == failure_class, log
    assert answer.line_no is not None
    assert answer.root_line is not None
    assert words in answer.root_line
    assert log.split("\n")[answer.line_no - 1] == answer.root_line
    assert remedy in targets(answer)
    assert not answer.healthy


def test_the_server_that_runs_is_healthy(model: Path) -> None:
    with llama_server(model) as server:
        server.post("/v1/completions", {"prompt": "one two", "max_tokens": 2})
        server.stop()
    answer = diagnose(server.log, engine="llamacpp")
    assert answer.healthy, answer
    assert answer.failure_class == "benign.none"


def targets(answer: Diagnosis) -> list[tuple[str, str]]:
    return [(remedy.target, remedy.direction) for remedy in answer.remedies]
