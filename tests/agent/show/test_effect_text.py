"""How effects are spelt."""

from moeagent.agent.show.text import effect_text
from moeagent.memory.records import Effect


def test_an_interval_that_says_nothing_is_not_spelt_out() -> None:
    effect = Effect(concurrency=None, effect=-0.489, low=-1.0, high=5.3e78, launches=(2, 1))
    assert effect_text(effect) == "-48.9% [-100.0%, over +1000%]"
