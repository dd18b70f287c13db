"""The real llama.cpp server, started as a campaign starts it."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.llamacpp import LlamaServer, failed_start, free_port, llama_server, server_argv, tiny_model

from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.effective import differences
from moeagent.tools.engines.llama_options import BadArgument, help_text, parse
from moeagent.tools.engines.llamacpp import LlamacppEngine
from moeagent.tools.engines.probing import read_knobs
from moeagent.tools.engines.registry import embedded_llamacpp
from moeagent.tools.engines.validate import validate_config
from moeagent.tools.hosts.local import LocalHost

pytestmark = pytest.mark.part("llamacpp")
ENGINE = LlamacppEngine()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[LlamaServer]:
    flags = {"--parallel": 4, "--ctx-size": 2048, "--verbosity": 4, "--batch-size": 256, "--ubatch-size": 128}
    with llama_server(model, flags) as running:
        yield running


def test_it_answers_health_and_generates_as_many_tokens_as_asked(server: LlamaServer) -> None:
    assert server.get("/health") == {"status": "ok"}
    body = {"prompt": "the model of the server", "max_tokens": 12, "temperature": 0}
    body |= ENGINE.load.ignore_eos_body
    answer = server.post("/v1/completions", body)
    assert answer["usage"]["completion_tokens"] == 12
    assert answer["choices"][0]["finish_reason"] == "length"
    assert server.post("/v1/completions", body)["choices"][0]["text"] == answer["choices"][0]["text"]


def test_it_says_what_is_in_force(server: LlamaServer) -> None:
    effective = ENGINE.effective(server.get("/props"), server.log)
    assert effective["--parallel"] == 4
    assert effective["n_ctx_slot"] == 512
    assert effective["--batch-size"] == 256
    asked = ServerConfig(engine="llamacpp", flags={"-np": 4, "--ubatch-size": 512})
    assert [(d.flag, d.effective) for d in differences(asked, effective)] == [("--ubatch-size", 128)]


def test_its_memory_lines_are_read(server: LlamaServer) -> None:
    memory = ENGINE.memory(server.log)
    assert memory["kv_tokens"] == 2048
    assert memory["weights_gib"] == pytest.approx(27.01 / 1024, rel=0.01)
    assert memory["kv_gib"] == pytest.approx(4 / 1024, rel=0.01)


def test_every_stage_and_readiness_is_seen_in_its_log(server: LlamaServer) -> None:
    positions = [re.search(stage.pattern, server.log) for stage in ENGINE.ready.stages]
    assert all(positions)
    starts = [match.start() for match in positions if match]
    assert starts == sorted(starts)
    assert ENGINE.ready.ready_log is not None
    assert re.search(ENGINE.ready.ready_log, server.log)


def test_sigterm_stops_it_cleanly(model: Path) -> None:
    with llama_server(model) as running:
        assert running.stop() == 0
        assert "error" not in running.log.lower()


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"--max-num-seqs": 3}, "error: invalid argument: --max-num-seqs"),
        ({"--parallel": "many"}, 'error while handling argument "--parallel": stoi'),
        ({"-ctk": "q9"}, 'error while handling argument "-ctk": Unsupported cache type: q9'),
    ],
)
def test_bad_flags_end_the_start(model: Path, flags: dict, line: str) -> None:
    status, log = failed_start(model, free_port(), flags)
    assert status == 1
    assert log.splitlines()[0] == line


def test_a_missing_model_ends_the_start(tmp_path: Path) -> None:
    status, log = failed_start(tmp_path / "nope.gguf", free_port())
    assert status == 1
    assert "failed to open GGUF file" in log
    assert "exiting due to model loading error" in log


def test_a_model_that_was_cut_short_ends_the_start(model: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    status, log = failed_start(cut, free_port())
    assert status == 1
    assert "data is not within the file bounds, model is corrupted or incomplete" in log


def test_a_taken_port_ends_the_start(model: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, log = failed_start(model, port)
    assert status == 1
    assert f"couldn't bind HTTP server socket, hostname: 127.0.0.1, port: {port}" in log


def test_a_quantised_v_cache_without_flash_attention_ends_the_start_and_is_foretold(model: Path) -> None:
    flags = {"--cache-type-v": "q8_0", "--flash-attn": "off"}
    status, log = failed_start(model, free_port(), flags)
    assert status == 1
    assert "V cache" in log
    facts = read_knobs(LocalHost(), embedded_llamacpp(), ENGINE)
    problems = validate_config(ServerConfig(engine="llamacpp", flags=flags), facts)
    assert [p.kind for p in problems if p.fatal] == ["coupling"]


def test_its_flags_are_read_from_its_help() -> None:
    facts = read_knobs(LocalHost(), embedded_llamacpp(), ENGINE)
    assert facts.source == "help"
    assert facts.version
    parallel = facts.knob("-np")
    assert parallel is not None
    assert (parallel.name, parallel.kind, parallel.default) == ("--parallel", "int", -1)
    cache = facts.knob("-ctk")
    assert cache is not None
    assert cache.choices is not None
    assert "q8_0" in cache.choices
    warmup = facts.knob("--no-warmup")
    assert warmup is not None
    assert warmup.kind == "bool"


def test_every_flag_of_the_help_is_in_the_catalogue() -> None:
    from moeagent.tools.engines.catalogue import catalogue
    from moeagent.tools.engines.knobs import parse_llama_help

    unknown = [k.name for k in parse_llama_help(help_text()) if catalogue("llamacpp").entry(k.name) is None]
    assert set(unknown) <= {"--model", "--host", "--port", "--repack"}


def test_the_last_value_wins_and_a_missing_one_is_an_error() -> None:
    assert parse(["-np", "1", "--parallel", "2"]) == {"n_parallel": 2}
    with pytest.raises(BadArgument, match="expected value"):
        parse(["-np"])


def test_without_a_model_it_says_so() -> None:
    argv = [sys.executable, "-m", "moeagent.tools.engines.llama_serve", "--port", "1"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "error: --model is required\n")


def test_the_command_is_the_same_for_equal_configurations() -> None:
    one = server_argv("m.gguf", 1, {"--parallel": 2, "--ctx-size": 64})
    assert one == server_argv("m.gguf", 1, {"--ctx-size": 64, "--parallel": 2})
