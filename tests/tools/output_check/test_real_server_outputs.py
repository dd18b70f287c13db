"""The output check against the real llama.cpp server, batched and alone."""

import pytest
from parts.llamacpp import llama_server, tiny_model

from moeagent.tools.engines.tiny_moe import TinyMoe, write_tiny_moe
from moeagent.tools.output_check.collect import collect
from moeagent.tools.output_check.compare import compare

pytestmark = pytest.mark.part("llamacpp")
FLAGS = {"--parallel": 8, "--ctx-size": 2048, "--threads": 1}
PROMPTS = ["the model of the server", "one request after another", "a token and a word", "what comes next"]


def _sample(model):
    with llama_server(model, FLAGS) as server:
        url = f"http://127.0.0.1:{server.port}"
        return collect(url, model="tiny", prompts=PROMPTS, batch_sizes=(1, 8), max_tokens=16)


def test_the_same_weights_agree_and_other_weights_do_not(tmp_path):
    model = tiny_model(tmp_path)
    baseline = _sample(model)
    assert all(a.logprobs and not a.error for b in baseline.batches for a in b.answers)
    assert compare([baseline], _sample(model)).ok
    other = write_tiny_moe(tmp_path / "other.gguf", TinyMoe(seed=1))
    wrong = compare([baseline], _sample(other))
    assert {e.batch_size for e in wrong.evidence if e.detector == "agreement"} == {1, 8}
