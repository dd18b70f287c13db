"""Malformed answers of a language model: a draft, or an error that can be shown to the model."""

import json
import random
from typing import Any

from moeagent.agent.proposers.answer import AnswerError, ModelAnswer, change_of, draft_of
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.vetting import problems_of
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import PredictedEffect
from moeagent.tools.llm.parsing import UnusableAnswerError, parse_answer
from moeagent.tools.llm.records import Completion

SEED = 13
GOOD = {
    "action": "propose",
    "statement": "Larger prefill chunks",
    "reason": "the prompt phase binds",
    "category": "scheduler",
    "set": ["--chunked-prefill-size=8192", "NCCL_ALGO=Ring", "--enable-mixed-chunk"],
    "remove": ["--disable-radix-cache"],
    "predicted": [{"concurrency": 10, "effect": 0.05, "low": 0.0, "high": 0.1}],
    "refuted_by": "less than 2 %",
}
ODD: tuple[Any, ...] = (
    None, -1, 1e308, "", "\x00\x1b[2J", [], [[]], {}, ["--"], ["=x"], ["-=;rm -rf /"], ["--a b\nc"],
    ["A" * 5000],
    ["--x=" + "9" * 400], ["--x=1e999"], ["--x=nan"], [{"a": 1}], [{"concurrency": 0}],
    [{"concurrency": 10, "effect": "1e400", "low": "-inf", "high": "nan"}], "look_up", True, "\ud800",
)  # fmt: skip
WRAPS = (
    "{}", "```json\n{}\n```", "<think>{{\"set\": []}}</think>{}", "<think>{}", "{} {}", "Sure! {}", "[{}]",
    "</think>{}", "{{{}}}", "{}```", "{{\"a\": {}}}",
)  # fmt: skip


def malformed(chance: random.Random) -> Completion:
    """A good answer with odd fields, wrapped as models wrap them, and perhaps cut or damaged."""
    fields = dict(GOOD)
    for _ in range(chance.randint(0, 3)):
        fields[chance.choice(list(fields))] = chance.choice(ODD)
    text = json.dumps(fields)
    wrap = chance.choice(WRAPS)
    text = wrap.format(*[text] * 2) if "{}" in wrap else wrap
    if chance.random() < 0.3:
        text = text[: chance.randrange(len(text))]
    if chance.random() < 0.3:
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(('"', "{", "}", "\x00", "NaN", "[" * 3000, "\\", "\n")) + text[at:]
    inside = chance.random() < 0.2
    return Completion(
        content="" if inside else text,
        reasoning=text if inside else "",
        finish_reason=chance.choice(("stop", "length")),
    )


def test_a_malformed_answer_becomes_a_draft_or_an_error_for_the_model(
    sm120_view: CampaignView, full: bool
) -> None:
    question = Playbook().question(sm120_view)
    numbers = (PredictedEffect(concurrency=10, effect=0.0, low=-0.1, high=0.1),)
    chance = random.Random(SEED)
    tried, read = 10_000 if full else 300, 0
    for _ in range(tried):
        try:
            answer = parse_answer(malformed(chance), ModelAnswer)
            change = change_of(answer, question)
            problems_of(change, question)
            draft = draft_of(answer, change, question, numbers)
        except (UnusableAnswerError, AnswerError):
            continue
        read += 1
        assert not any(ord(letter) < 32 for letter in draft.statement + draft.reason)
    print(f"\n{tried} malformed answers: {read} read as drafts, {tried - read} refused by name")
    assert 0 < read < tried
