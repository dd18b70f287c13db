"""llama.cpp on CPU cores: directions and refusals."""

import pytest

from moeagent.memory.records import FlagValue, HostFacts, ModelFacts, ServerConfig, Workload
from moeagent.tools.predict.calibration import Calibration
from moeagent.tools.predict.effects import effects
from moeagent.tools.predict.machine import machine_from_facts
from moeagent.tools.predict.model_config import model_from_facts
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Machine, ModelShape, Prediction
from moeagent.tools.predict.risk import risk

LOAD = Workload(input_len=42, output_len=48, ladder=(1, 8, 32))


@pytest.fixture
def tiny() -> ModelShape:
    config = {
        "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 64, "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 512,
        "vocab_size": 8192, "max_position_embeddings": 4096,
    }  # fmt: skip
    found = model_from_facts(ModelFacts(path="t.gguf", architecture="qwen3moe", config=config, size_gib=0.03))
    assert isinstance(found, ModelShape)
    return found


@pytest.fixture
def cores() -> Machine:
    found = machine_from_facts(HostFacts(name="local", machine_id="m", cpu_cores=2, ram_gib=8))
    assert isinstance(found, Machine)
    return found


def config(**flags: FlagValue) -> ServerConfig:
    return ServerConfig(engine="llamacpp", flags={f"-{k}": v for k, v in flags.items()})


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_only_the_speed_of_llamacpp_is_known_on_cores(engine: str, cores: Machine, tiny: ModelShape) -> None:
    found = predict(ServerConfig(engine=engine), cores, tiny, LOAD)
    assert found.memory is not None
    assert not found.rungs
    assert found.problems == (f"speed cannot be predicted: {engine} on CPU cores has no model",)


def speed(found: Prediction) -> list[float]:
    return [r.output_tok_s.value for r in found.rungs]


def test_published_runs_lie_in_the_wide_range(cores, tiny):
    """Two sets of runs on two cores, defaults: 325/257/429 and 1034/1163/1448 tok/s."""
    rungs = predict(config(), cores, tiny, LOAD).rungs
    for rung, slow, fast in zip(rungs, (325, 257, 429), (1034, 1163, 1448), strict=True):
        assert slow < rung.output_tok_s.high
        assert fast > rung.output_tok_s.low


def test_more_slots_help_and_shorten_the_queue(cores, tiny):
    few, many = (predict(config(np=n, c=16384), cores, tiny, LOAD) for n in (1, 32))
    assert speed(many)[2] > speed(few)[2]
    assert many.rungs[2].ttft_ms.value < few.rungs[2].ttft_ms.value
    assert few.rungs[2].limit == "batch cap"


def test_more_threads_than_cores_lose(cores, tiny):
    found = effects(config(), config(t=4, tb=4), cores, tiny, LOAD)
    assert all(e.effect < -0.1 for e in found)
    assert predict(config(t=4, tb=4), cores, tiny, LOAD).rungs[0].limit == "host cpu"
    assert all(e.effect < 0 for e in effects(config(), config(t=1, tb=1), cores, tiny, LOAD))


def test_a_context_that_the_slots_cannot_share_is_a_problem(cores, tiny):
    found = predict(config(np=32, c=1024), cores, tiny, LOAD)
    assert "each slot holds 32 tokens" in found.problems[0]


def test_a_model_larger_than_the_ram_does_not_fit(cores, tiny):
    large = tiny.model_copy(update={"file_gib": 20.0})
    found = predict(config(), cores, large, LOAD)
    assert found.memory is not None
    assert found.memory.verdict == "does_not_fit"
    unknown = cores.model_copy(update={"memory_mib": 0})
    assert predict(config(), unknown, large, LOAD).rungs


def test_k_and_v_types_of_the_cache(cores, tiny):
    def cell(**flags):
        found = predict(config(**flags), cores, tiny, LOAD).memory
        assert found is not None
        return found.kv_bytes_per_token

    assert cell(ctk="q8_0", ctv="q8_0") < cell(ctk="q8_0", ctv="f16") < cell()


def test_a_measured_baseline_narrows_the_range(cores, tiny):
    known = Calibration(speed={1: 0.9, 32: 0.9})
    plain, corrected = (predict(config(), cores, tiny, LOAD, c).rungs[0].output_tok_s for c in (None, known))
    assert corrected.high / corrected.low < plain.high / plain.low
    assert corrected.value == pytest.approx(plain.value * 0.9)


def test_a_small_cache_that_was_asked_for_is_no_risk(tiny: ModelShape, cores: Machine) -> None:
    asked = ServerConfig(engine="vllm", flags={"--max-model-len": 512})
    found, why = risk(predict(asked, cores, tiny, LOAD))
    assert found < 0.05
    assert why == "memory has room"
