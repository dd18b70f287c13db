"""config.json to shapes: totals, actives, attention kinds, and clear refusals."""

import json

import pytest
from fixtures.predict.shapes import MODELS, model

from moeagent.memory.records import ModelFacts
from moeagent.tools.predict.model_config import model_from_config, model_from_facts
from moeagent.tools.predict.parameters import active, count
from moeagent.tools.predict.records import ModelShape, Unknown

# Billions of parameters, total and active, of the fact sheet (section B).
SIZES = {
    "GLM-5": (743.9, 41.7),
    "Kimi-K2.5": (1026.4, 32.7),
    "DeepSeek-R1": (671.0, 37.4),
    "GLM-4.6": (352.8, 33.6),
    "Qwen3-235B-A22B": (235.1, 22.1),
    "Qwen3-30B-A3B": (30.5, 3.3),
    "gpt-oss-120b": (116.8, 5.7),
    "gpt-oss-20b": (20.9, 4.2),
    "Mixtral-8x7B-v0.1": (46.7, 12.9),
    "MiniMax-M2.5": (228.7, 11.0),
    "Qwen3.5-397B-A17B": (397, 17),
    "Qwen3-Coder-480B-A35B-Instruct": (480, 35),
    "Qwen3-Next-80B-A3B": (80, 3.9),
    "Llama-4-Maverick-17B-128E-Instruct": (400, 17),
    "Meta-Llama-3.1-70B": (70.6, 70.6),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31.6, 3.6),
}


@pytest.mark.parametrize("name", SIZES)
def test_totals_and_actives(name):
    total, used = SIZES[name]
    shape = model(name)
    assert count(shape).total / 1e9 == pytest.approx(total, rel=0.01)
    assert active(shape) / 1e9 == pytest.approx(used, rel=0.06)


def test_attention_kinds():
    def kinds(name):
        return {g.kind: g.layers for g in model(name).attention}

    assert kinds("GLM-5") == {"mla": 78}
    assert model("GLM-5").attention[0].index_topk == 2048
    assert model("DeepSeek-R1").attention[0].index_topk == 0
    assert kinds("gpt-oss-120b") == {"gqa": 18, "window": 18}
    assert kinds("Qwen3.5-397B-A17B") == {"gqa": 15, "linear": 45}
    assert kinds("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16") == {"gqa": 6, "linear": 23}
    assert kinds("MiMo-V2-Flash") == {"gqa": 9, "window": 39}


def test_nested_text_config_and_vision_tower():
    kimi = model("Kimi-K2.5")
    assert kimi.layers == 61
    assert (kimi.vision_layers, kimi.vision_hidden) == (27, 1152)
    assert kimi.vision_params * 2 / 1e9 == pytest.approx(0.9, rel=0.05)


@pytest.mark.parametrize(
    ("name", "experts", "shared", "attention", "kv"),
    [
        ("Kimi-K2.5", "int4", "bfloat16", "bfloat16", "bfloat16"),
        ("GLM-5.1-NVFP4", "nvfp4", "bfloat16", "bfloat16", "fp8"),
        ("Kimi-K2.5-NVFP4", "nvfp4", "nvfp4", "bfloat16", "fp8"),
        ("Qwen3.5-397B-A17B-NVFP4", "nvfp4", "bfloat16", "bfloat16", "fp8"),
        ("DeepSeek-R1", "fp8_block", "fp8_block", "fp8_block", "bfloat16"),
        ("gpt-oss-120b", "mxfp4", "mxfp4", "bfloat16", "bfloat16"),
        ("GLM-5", "bfloat16", "bfloat16", "bfloat16", "bfloat16"),
    ],
)
def test_quantisation_of_each_part(name, experts, shared, attention, kv):
    shape = model(name)
    assert (shape.formats.experts, shape.formats.shared, shape.formats.attention) == (
        experts,
        shared,
        attention,
    )
    assert shape.kv_dtype == kv


def test_a_quantisation_that_only_the_name_tells():
    config = json.loads((MODELS / "GLM-5.json").read_text())
    shape = model_from_config(config, name="/models/GLM-5-NVFP4")
    assert isinstance(shape, ModelShape)
    assert shape.formats.experts == "nvfp4"
    assert "by the model's name" in shape.notes[0]


def test_missing_fields_are_named():
    found = model_from_config({"architectures": ["Weird"], "hidden_size": 64}, name="weird")
    assert isinstance(found, Unknown)
    for field in ("num_hidden_layers", "vocab_size", "num_attention_heads"):
        assert field in str(found)


def test_an_empty_config_is_no_error():
    assert isinstance(model_from_facts(ModelFacts(path="m.gguf")), Unknown)


def test_an_attention_that_the_formulas_do_not_describe_is_refused():
    config = json.loads((MODELS / "DeepSeek-V4-Flash.json").read_text())
    found = model_from_config(config, name="V4")
    assert isinstance(found, Unknown)
    assert "compress" in found.why


def test_experts_in_a_latent_space_are_refused():
    config = json.loads((MODELS / "Qwen3-30B-A3B.json").read_text()) | {"moe_latent_size": 512}
    assert isinstance(model_from_config(config), Unknown)


def test_an_unlisted_class_is_predicted_from_its_fields_and_says_so():
    config = json.loads((MODELS / "Qwen3-30B-A3B.json").read_text()) | {
        "architectures": ["NewMoeForCausalLM"]
    }
    shape = model_from_config(config)
    assert isinstance(shape, ModelShape)
    assert "NewMoeForCausalLM is not in the table" in shape.notes[0]


def test_fields_of_a_wrong_type_are_no_traceback():
    config = json.loads((MODELS / "Qwen3-30B-A3B.json").read_text()) | {"moe_intermediate_size": "many"}
    assert isinstance(model_from_config(config), Unknown)


def test_a_gguf_header_gives_a_shape():
    fields = {
        "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 64, "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 256,
        "vocab_size": 4096, "max_position_embeddings": 2048,
    }  # fmt: skip
    shape = model_from_facts(ModelFacts(path="t.gguf", architecture="qwen3moe", config=fields, size_gib=0.02))
    assert isinstance(shape, ModelShape)
    assert shape.architecture == "qwen3moe"
    assert shape.notes == ()
    assert shape.file_gib == 0.02
