import pytest
from pydantic import BaseModel

from moeagent.tools.llm.parsing import UnusableAnswerError, parse_answer
from moeagent.tools.llm.records import Completion


class Form(BaseModel):
    name: str
    size: int


GOOD = '{"name": "a", "size": 3}'


@pytest.mark.parametrize(
    "completion",
    [
        Completion(content=GOOD),
        Completion(content=f"```json\n{GOOD}\n```"),
        Completion(content=f'<think>perhaps {{"name": "b", "size": 9}}</think>\n{GOOD}'),
        Completion(content=f"the thought whose start is lost {{}}</think>{GOOD}"),
        Completion(content=f"Sure! Here it is:\n{GOOD}\nLet me know if you need more {{braces}}."),
        Completion(content="", reasoning=f"I answer {GOOD}"),
        Completion(content=f"<think>{GOOD}"),
        Completion(content='{"name": "draft"} and then, better: ' + GOOD),
        Completion(content="{" * 50 + GOOD),
    ],
)
def test_the_object_is_found(completion):
    assert parse_answer(completion, Form) == Form(name="a", size=3)


@pytest.mark.parametrize(
    ("completion", "told"),
    [
        (Completion(content=""), "empty"),
        (Completion(content="I would raise the batch size."), "no JSON object"),
        (Completion(content='{"name": "a", "si', finish_reason="length"), "cut off"),
        (Completion(content='{"name": "a"}'), "size: Field required"),
        (Completion(content='{"name": "a", "size": NaN}'), "no JSON object"),
        (Completion(content='[1, 2, "{"]'), "no JSON object"),
        (Completion(content="[" * 100_000), "no JSON object"),
        (Completion(content='{"a":' * 50_000), "no JSON object"),
    ],
)
def test_what_cannot_be_used_says_why(completion, told):
    with pytest.raises(UnusableAnswerError, match=told):
        parse_answer(completion, Form)
