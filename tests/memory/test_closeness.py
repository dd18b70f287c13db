"""How far a finding of another scope is believed."""

import pytest

from moeagent.memory.findings.closeness import EXACT, closeness, family
from moeagent.memory.records import Scope

HERE = Scope(gpu="RTX PRO 6000", gpu_count=8, engine="sglang", engine_version="0.5.9", model="GLM-5-NVFP4")


def trust(same_load: bool = True, **changes) -> float:
    return closeness(HERE.model_copy(update=changes), HERE, same_load=same_load).trust


def test_the_same_scope_is_believed_most():
    assert trust() == EXACT


def test_trust_falls_from_exact_to_relaxed():
    falling = [
        trust(),
        trust(model="GLM-4.6"),
        trust(model="Kimi-K2.5"),
        trust(model="Kimi-K2.5", gpu_count=4),
    ]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) == len(falling)


@pytest.mark.parametrize(
    ("near", "far"), [("0.5.10", "0.5.14"), ("0.5.14", "0.6.0"), ("0.5.8", "0.4.9"), ("0.5.9.post1", None)]
)
def test_findings_age_with_the_engines_version(near, far):
    assert trust(engine_version=near) > trust(engine_version=far)


def test_another_workload_is_a_hint_only():
    assert trust(same_load=False) < trust()


def test_the_words_say_what_differs():
    theirs = HERE.model_copy(update={"model": "GLM-4.6", "gpu_count": 4, "engine_version": "0.5.2"})
    told = closeness(theirs, HERE, same_load=False).words
    assert told == (
        "same family (GLM-4.6), 4 of the same GPU, engine 0.5.2 instead of 0.5.9, another workload or goal"
    )


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("GLM-5-NVFP4", "glm"), ("Qwen3-30B-A3B", "qwen"), ("Meta-Llama-3.1-70B", "llama"),
        ("DeepSeek-V3", "deepseek"), ("7B", "7b"),
    ],
)  # fmt: skip
def test_the_family_is_the_name_before_the_version(model, name):
    assert family(model) == name
