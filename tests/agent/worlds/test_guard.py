"""A user's own world: whatever it does wrong is named, and nothing waits for it."""

import pytest
from own_worlds import BAD, EXAMPLE, write_bad

from moeagent.agent.worlds.contest import play
from moeagent.agent.worlds.guard import guarded_world, load_factory
from moeagent.agent.worlds.policies import policy_by_name
from moeagent.agent.worlds.search import Grid
from moeagent.memory.errors import InputError


def test_the_example_is_a_world() -> None:
    world = guarded_world(load_factory(f"{EXAMPLE}:toy"), 3)
    result = play(policy_by_name("tpe"), world, seed=0, launches=8)
    assert result.name == "toy-3"
    assert result.best_over_oracle == 1.0


@pytest.mark.parametrize("name", BAD)
def test_a_bad_world_ends_with_one_line_that_names_what_it_did(name, tmp_path) -> None:
    world = guarded_world(load_factory(write_bad(tmp_path, name)), 0, deadline_s=0.5)
    with pytest.raises(InputError) as raised:
        play(Grid(), world, seed=0, launches=3)
    assert BAD[name][1] in str(raised.value)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("world.py", "write module.py:factory"),
        ("/nowhere/world.py:make", "there is no file"),
        (f"{EXAMPLE}:nothing", "has no function nothing"),
    ],
)
def test_a_spec_that_names_no_factory(spec, told) -> None:
    with pytest.raises(InputError, match=told):
        load_factory(spec)


def test_a_module_that_does_not_import(tmp_path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import nothing_of_this_name\n")
    with pytest.raises(InputError, match="importing it raised ModuleNotFoundError"):
        load_factory(f"{path}:make")


def test_a_factory_that_leaves_the_process_does_not() -> None:
    def leaves(seed: int) -> None:
        raise SystemExit(0)

    with pytest.raises(InputError, match=r"leaves\(0\) raised SystemExit"):
        guarded_world(leaves, 0)


def test_an_object_without_the_members() -> None:
    with pytest.raises(InputError, match="lacks name, baseline"):
        guarded_world(lambda seed: object(), 0)
