"""What rules may ask about a model, and the divisions that its shape forbids."""

import json

import pytest
from fixtures.predict.shapes import MODELS, model

from moeagent.memory.records import ServerConfig
from moeagent.tools.predict.feasibility import impossible
from moeagent.tools.predict.machine import machine_from_name
from moeagent.tools.predict.model_config import model_from_config
from moeagent.tools.predict.records import Unknown
from moeagent.tools.predict.rule_facts import rule_facts
from moeagent.tools.predict.settings import read_settings


@pytest.mark.parametrize(
    ("name", "weights", "attention", "cache", "experts"),
    [
        ("GLM-5.1-NVFP4", "nvfp4", "mla", "sparse", 256),
        ("DeepSeek-R1", "fp8", "mla", "plain", 256),
        ("gpt-oss-120b", "mxfp4", "mha", "window", 128),
        ("Qwen3-Next-80B-A3B", "bfloat16", "mha", "hybrid", 512),
        ("Meta-Llama-3.1-70B", "bfloat16", "mha", "plain", 0),
    ],
)
def test_facts_of_public_models(name, weights, attention, cache, experts):
    found = rule_facts(model(name))
    assert found["model.weights"] == weights
    assert found["model.attention"] == attention
    assert found["model.cache"] == cache
    assert found["model.experts"] == experts
    assert found["model.architecture"]


def test_nothing_is_said_of_an_unknown_model():
    assert rule_facts(Unknown(what="the model", why="no config")) == {}


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        ({"--tp-size": 4}, None),
        ({"--tp-size": 8, "--ep-size": 2}, None),
        ({"--tp-size": 8}, "192 rows of an expert, no multiple of its FP8 blocks of 128"),
        ({"--tp-size": 8, "--ep-size": 8}, None),
    ],
)
def test_blocks_of_quantised_experts_are_not_cut(flags, part):
    """Qwen3-235B-A22B-FP8 on eight ranks: SGLang's model_runner.py:724 and vLLM's fp8.py both refuse it."""
    config = json.loads((MODELS / "Qwen3-235B-A22B.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    known = model_from_config(config)
    settings = read_settings(ServerConfig(engine="sglang", flags=flags))
    found = impossible(settings, machine_from_name("8x H200"), known)
    assert [part in line for line in found] == ([] if part is None else [True])


def test_the_block_size_comes_from_the_checkpoint():
    assert model("DeepSeek-R1").weight_block == 128
    assert model("GLM-5.1-NVFP4").weight_block == 0


@pytest.mark.parametrize(
    ("extra", "method"),
    [
        ({"quantization_config": {"quant_method": "AWQ"}}, "awq"),
        ({"hf_quant_config": {"quantization": {"quant_algo": "NVFP4"}}}, "modelopt"),
        ({}, ""),
    ],
)
def test_the_checkpoints_own_word_for_its_quantisation(extra, method):
    config = json.loads((MODELS / "Qwen3-30B-A3B.json").read_text())
    config.pop("quantization_config", None)
    assert rule_facts(model_from_config(config | extra))["model.quant_method"] == method
