"""Worlds as a benchmark: the protocol, the families, the oracle."""

import pytest

from moeagent.tools.sim.families import FAMILIES, draw_worlds, placebo_worlds
from moeagent.tools.sim.space import value_of, with_choice
from moeagent.tools.sim.worlds import SimWorld

WORLDS = draw_worlds(10)


@pytest.mark.parametrize("world", WORLDS[:7] + WORLDS[9:], ids=lambda world: world.name)
def test_a_world_has_something_to_find_and_its_oracle_works(world: SimWorld) -> None:
    baseline = world.value(world.baseline)
    best, value = world.oracle()
    assert baseline is not None
    assert value > baseline * 1.05
    assert world.value(best) == value
    for nonce in range(5):
        outcome = world.launch(best, world.workload, nonce)
        assert not outcome.crashed, outcome.log[-500:]
        assert outcome.answers == "reference"
        measured = max(rung.output_tok_s or 0.0 for rung in outcome.rungs)
        assert measured == pytest.approx(value, rel=0.3)


def test_facts_are_marked_simulated_and_name_real_flags() -> None:
    for world in WORLDS[:4]:
        facts = world.facts()
        assert facts.host.simulated
        assert facts.host.driver is not None
        assert "simulated" in facts.host.driver
        flags = {knob.name for knob in facts.engine.knobs}
        assert {knob.name for knob in world.space() if knob.name.startswith("-")} <= flags
        assert facts.model.config["architectures"]


def test_all_families_are_drawn_and_seeds_differ() -> None:
    assert {world.family.split("-")[0] for world in draw_worlds(10)} >= {
        "plain",
        "interaction",
        "textbook",
        "cliff",
    }
    assert draw_worlds(3, seed=1)[0].world.hidden != draw_worlds(3, seed=2)[0].world.hidden
    assert FAMILIES["plain"](7).world == FAMILIES["plain"](7).world


def test_no_lure_kills_what_a_crashing_world_starts_from() -> None:
    for seed in (7026, 7166, 7176):
        world = FAMILIES["crashing"](seed)
        assert world.value(world.baseline) is not None


def test_nothing_helps_in_a_placebo_world() -> None:
    for world in placebo_worlds(4):
        base = world.value(world.baseline)
        assert world.oracle() == (world.baseline, base)
        for knob in world.space():
            for choice in knob.choices:
                assert world.value(with_choice(world.baseline, knob.name, choice)) in (base, None)


def test_two_changes_that_pay_only_together() -> None:
    paying = 0
    for seed in range(12):
        world = FAMILIES["interaction"](seed)
        one, other, _ = world.world.hidden.couples[0]
        names = {name if name.isupper() else "--" + name.replace("_", "-"): None for name in (one, other)}
        base = world.value(world.baseline)
        assert base is not None
        both = world.baseline
        for name in names:
            both = with_choice(both, name, "8" if name.isupper() else True)
            alone = world.value(with_choice(world.baseline, name, "8" if name.isupper() else True))
            assert alone is not None
            assert alone < base * 1.002
        paying += (world.value(both) or 0.0) > base * 1.05
    assert paying >= 9


def test_a_choice_is_set_and_left_out_again() -> None:
    world = WORLDS[0]
    knob = next(knob for knob in world.space() if knob.name == "OMP_NUM_THREADS")
    changed = with_choice(world.baseline, knob.name, knob.values[0])
    assert value_of(changed, knob.name) == knob.values[0]
    assert with_choice(changed, knob.name, None) == world.baseline
