"""What a fork may change, and where it begins."""

from pathlib import Path

import pytest
from parts.made_run import write_run

from moeagent.agent.cli.parse import settings
from moeagent.agent.forking import check_changes, line_of, own_prompts
from moeagent.memory.errors import InputError
from moeagent.memory.run_folder import RunFolder
from moeagent.prompts.loader import PromptError, Prompts, load_prompt

EXAMPLE = RunFolder(Path(__file__).parents[2] / "runs" / "example-sm120").read_tape()


def test_a_fork_at_a_hypothesis_begins_where_it_was_thought_of() -> None:
    line = line_of(EXAMPLE, "H2")
    kept, left = EXAMPLE.entries[line - 1], EXAMPLE.entries[line:]
    assert "active_s" in kept.body["response"]
    following = next(e for e in left if e.kind == "hypothesis")
    assert following.body["value"]["id"] == "H2"
    assert {e.kind for e in left[: left.index(following)]} <= {"limit", "note", "complete"}
    assert line_of(EXAMPLE, "17") == 17


@pytest.mark.parametrize(("where", "told"), [("H99", "hypotheses are H1"), ("0", "lines 1 to"), ("L1", "H1")])
def test_a_place_that_is_not_there_is_named(where: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        line_of(EXAMPLE, where)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"workload": {"seed": 7}}, "measured before it was measured with the old value"),
        ({"goal": {"name": "fastest"}}, "goal.name"),
        ({"prompt": {"turn": "no header"}}, "does not start with a header"),
        ({"idea": [{"env": {"API_KEY": "sk-1234567890abcdef"}}]}, "holds a secret"),
    ],
)
def test_what_a_fork_cannot_change_is_refused_before_a_folder_is_made(
    tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    tape = write_run(tmp_path).read_tape()
    with pytest.raises(InputError, match=told):
        check_changes(tape, 5, changes)


def test_set_takes_toml_and_plain_words() -> None:
    words = ["goal.min_effect=0.05", "goal.name=min-latency", 'space.forbid=["--x"]', "start_timeout_s=60"]
    assert settings(words) == {
        "goal": {"min_effect": 0.05, "name": "min-latency"},
        "space": {"forbid": ["--x"]},
        "start_timeout_s": 60,
    }
    with pytest.raises(InputError, match="write KEY=VALUE"):
        settings(["goal"])


def test_a_prompt_of_ones_own_must_use_what_it_is_given(tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_text("---\nname: rejected\nversion: 2\nvariables: problems, left\n---\n{{problems}}: {{left}}")
    own = Prompts(own_prompts([f"rejected={file}"]))
    assert own.load("rejected").render(problems="a", left="1") == "a: 1\n"
    assert own.load("turn") == load_prompt("turn")
    with pytest.raises(PromptError, match="must use the variables problems, left"):
        Prompts({"rejected": "---\nname: rejected\nversion: 2\nvariables: left\n---\n{{left}}"}).load(
            "rejected"
        )
    with pytest.raises(InputError, match="there is no prompt 'rejekted'"):
        own_prompts([f"rejekted={file}"])
