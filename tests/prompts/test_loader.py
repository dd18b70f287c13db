import pytest

from moeagent.prompts.loader import PromptError, load_prompt, parse_prompt, prompt_names

GOOD = "---\nname: greet\nversion: 2\nvariables: who, what\n---\n{{who}} says {{what}}.\n"


def test_a_prompt_knows_its_version_and_renders():
    prompt = parse_prompt(GOOD, "greet.md")
    assert (prompt.version, prompt.variables) == (2, ("who", "what"))
    assert prompt.render(who="A", what="{{who}} {{nothing}}") == "A says {{who}} {{nothing}}.\n"
    assert len(prompt.digest) == 64


@pytest.mark.parametrize("values", [{"who": "A"}, {"who": "A", "what": "b", "more": "c"}, {}])
def test_a_missing_or_unknown_variable_is_an_error(values):
    with pytest.raises(PromptError, match="greet"):
        parse_prompt(GOOD, "greet.md").render(**values)


@pytest.mark.parametrize(
    "text",
    [
        "no header",
        GOOD.replace("version: 2", "version: two"),
        GOOD.replace("version: 2\n", ""),
        GOOD.replace("{{what}}", "{{that}}"),
        GOOD.replace("variables: who, what", "variables: who"),
        GOOD.replace("version: 2", "version 2"),
    ],
)
def test_a_faulty_file_is_named(text):
    with pytest.raises(PromptError, match=r"greet\.md"):
        parse_prompt(text, "greet.md")


def test_every_prompt_of_the_package_loads():
    assert set(prompt_names()) == {"cause", "engineer", "looked_up", "rejected", "turn"}
    assert all(load_prompt(name).version >= 1 for name in prompt_names())


def test_a_prompt_that_does_not_exist_names_those_that_do():
    with pytest.raises(PromptError, match="engineer"):
        load_prompt("engineeer")


def test_a_file_must_bear_its_own_name(tmp_path):
    (tmp_path / "other.md").write_text(GOOD)
    with pytest.raises(PromptError, match="greet"):
        load_prompt("other", tmp_path)


def test_a_text_is_known_as_a_rendering_of_its_prompt():
    prompt = parse_prompt(GOOD, "greet.md")
    assert prompt.rendered(prompt.render(who="A\nB", what="x"))
    assert not prompt.rendered("something else")
