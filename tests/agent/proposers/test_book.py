from importlib.resources import files

import pytest

from moeagent.agent.proposers.book import load_book, parse_book
from moeagent.agent.proposers.facts import FACT_NAMES, FUNCTION_NAMES
from moeagent.memory.errors import InputError

MOVE = """
engine = "sglang"
[[move]]
id = "one"
statement = "s"
why = "w"
source = "here"
category = "memory"
effect = [{{ at = 1, low = {low}, high = 0.1 }}]
when = "{when}"
on_failure = {then}
"""


@pytest.mark.parametrize("engine", ["sglang", "vllm", "llamacpp"])
def test_books_load_and_every_entry_has_a_source(engine):
    book = load_book(engine)
    assert book.engine == engine
    assert len(book.move) >= 12
    assert all(entry.source for entry in (*book.move, *book.step, *book.avoid))


def test_an_engine_without_a_book_has_an_empty_one():
    assert load_book("unheard-of").move == ()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"low": 0.2}, "low 0.2 is above high 0.1"),
        ({"when": "gpu_count > 1"}, "gpu_count"),
        ({"when": "gpus >"}, "not an expression"),
        ({"then": '["two"]'}, "names two, which does not exist"),
        ({"then": '[]\ncontrary = true\nremove = ["--x"]'}, "one is contrary"),
    ],
)
def test_a_faulty_file_is_named_with_its_fault(fields, told):
    text = MOVE.format(**{"low": 0.0, "when": "True", "then": "[]"} | fields)
    with pytest.raises(InputError, match=r"mine\.toml") as error:
        parse_book(text, "mine.toml")
    assert told in str(error.value)


def test_text_that_is_no_toml_is_an_input_error():
    with pytest.raises(InputError, match="broken"):
        parse_book("[[move", "broken")


def test_the_guide_names_every_fact_and_function():
    guide = (files("moeagent.agent.proposers.moves") / "README.md").read_text()
    assert [name for name in sorted(FACT_NAMES | FUNCTION_NAMES) if f"`{name}" not in guide] == []
