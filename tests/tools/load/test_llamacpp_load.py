"""The load generator against a real llama.cpp server with a tiny model, by each of its routes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.llamacpp import LlamaServer, llama_server, tiny_model

from moeagent.memory.errors import InputError
from moeagent.tools.load import RandomPrompts, RungSpec, Target, run_rung
from moeagent.tools.load.probe import calibrate, identify
from moeagent.tools.load.spec import ApiName

pytestmark = pytest.mark.part("llamacpp")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    folder: Path = tmp_path_factory.mktemp("model")
    with llama_server(tiny_model(folder), {"--parallel": 4, "--ctx-size": 4096}) as running:
        yield running


def target(server: LlamaServer, api: ApiName) -> Target:
    # Random weights at temperature 0 may repeat a token that has no text.
    return Target(base_url=f"http://127.0.0.1:{server.port}", api=api, extra_body={"temperature": 1.0})


@pytest.mark.parametrize("api", ["llamacpp", "openai-completions", "openai-chat"])
def test_every_route_counts_what_was_asked(server: LlamaServer, api: ApiName) -> None:
    spec = RungSpec(concurrency=6, requests=12, output_len=16, random=RandomPrompts(words=12), warmup=None)

    rung = run_rung(target(server, api), spec, deadline_s=100).rung

    assert (rung.completed, rung.failures_by_kind) == (12, {})
    assert rung.output_tokens == 12 * 16
    assert rung.prompt_tokens is not None
    assert rung.prompt_tokens > 12 * 12


def test_the_server_is_recognised_and_the_prompt_length_calibrated(server: LlamaServer) -> None:
    here = target(server, "llamacpp")

    assert identify(here)[:2] == ("llamacpp", "llamacpp")
    found = calibrate(here, 128)
    assert found.measured
    assert 10 < found.words < 128


def test_a_prompt_longer_than_the_context_is_one_clear_error(server: LlamaServer) -> None:
    with pytest.raises(InputError, match="--input-len"):
        calibrate(target(server, "llamacpp"), 20_000)
