"""Deterministic answers, the stand-in tokenizer, the prefix cache."""

import json
import random

from moeagent.memory.records import Workload
from moeagent.tools.sim.machines import GLM, campaign_world
from moeagent.tools.sim.text import WORDS, Answer, PrefixCache, count_tokens
from moeagent.tools.sim.virtual import VirtualMachine


def words(prompt: str, count: int, *, garbage: bool = False) -> list[str]:
    answer = Answer(prompt, garbage=garbage)
    return [answer.next_word() for _ in range(count)]


def test_the_same_prompt_has_the_same_answer_and_another_one_has_not() -> None:
    assert words("tell me", 20) == words("tell me", 20)
    assert words("tell me", 20) != words("tell us", 20)
    assert len(set(words("tell me", 200))) > 50
    assert set(words("tell me", 20, garbage=True)) == {"!"}


def test_words_need_no_escaping_in_json() -> None:
    assert all(json.dumps(word) == f'"{word}"' for word in WORDS)


def test_tokens_grow_with_words_and_ids_count_as_they_are() -> None:
    assert count_tokens("one two three") == 3
    assert count_tokens([5, 6, 7, 8]) == 4
    assert count_tokens("") == 1
    assert count_tokens("word " * 1000) in range(1000, 1002)


def test_a_repeated_beginning_is_cached_until_the_flush() -> None:
    cache = PrefixCache(enabled=True)
    rng = random.Random(1)
    prompt = " ".join(str(rng.random()) for _ in range(200))
    tokens = count_tokens(prompt)
    assert cache.hit(prompt, tokens) == 0
    assert cache.hit(prompt, tokens) > 0.8 * tokens
    half = prompt[: len(prompt) // 2] + "something else " * 200
    assert 0 < cache.hit(half, count_tokens(half)) < 0.7 * count_tokens(half)
    cache.flush()
    assert cache.hit(prompt, tokens) == 0
    assert PrefixCache(enabled=False).hit(prompt, tokens) == 0


def test_a_cache_type_that_garbles_answers_is_told_by_them() -> None:
    machine = VirtualMachine(campaign_world("A", 0))
    wrong = GLM.baseline.model_copy(update={"flags": {**GLM.baseline.flags, "--kv-cache-dtype": "fp4_e2m1"}})
    short = Workload(input_len=32, output_len=32, ladder=(1,))
    assert machine.launch(GLM.baseline, short, 1).answers == "reference"
    assert machine.launch(wrong, short, 1).answers != "reference"
