"""What preflight turns down on the simulated machine: a fixed sample always, 200 worlds with --full."""

import pytest
from bench.preflight.tally import tally

from moeagent.agent.predictor import CampaignPredictor
from moeagent.agent.preflight import Known, objection
from moeagent.agent.worlds.preflight import Preflight
from moeagent.memory.ledger import Ledger
from moeagent.tools.sim.families import FAMILIES, draw_worlds
from moeagent.tools.sim.machines import EP8_FLAGS, GLM, campaign_world
from moeagent.tools.sim.space import space_of, with_choice
from moeagent.tools.sim.worlds import SimWorld

SEED = 7


def test_a_fixed_sample() -> None:
    found = tally(draw_worlds(30, SEED), per_world=8)
    print("\n" + found.text())
    assert found.deaths > 20
    assert found.caught >= 0.9
    assert found.wronged <= 0.02


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_hundred_worlds(full: bool) -> None:
    if not full:
        pytest.skip("200 worlds: --full, or `make bench`")
    found = tally(draw_worlds(200, SEED), per_world=20)
    print("\n" + found.text())
    assert found.caught >= 0.9
    assert found.wronged <= 0.02
    assert found.missed, "a perfect score: look for a leak between simulator and predictor"


def test_what_a_world_hides_is_not_known_beforehand() -> None:
    """Kernels that die in this world alone: no rule may name them."""
    guessed = []
    for seed in range(40):
        world = FAMILIES["crashing"](seed)
        preflight = Preflight(world)
        knobs = {knob.name: knob for knob in space_of(world.world)}
        for entry in world.world.hidden.crashes:
            name, _, value = entry.partition("=")
            knob = knobs["--" + name.replace("_", "-")]
            choice = next(v for v in knob.values if str(v) == value)
            guessed.append(preflight.objection(with_choice(world.baseline, knob.name, choice)) is not None)
    assert len(guessed) > 100
    assert sum(guessed) / len(guessed) < 0.1


def test_expert_parallelism_at_its_edge_is_launched() -> None:
    """EP8 at 0.92 dies under load, not at start: it is tight, and it is launched."""
    world = SimWorld(campaign_world("A", 0), "campaign", GLM.baseline, GLM.workload)
    facts = world.facts()
    predictor = CampaignPredictor(world.workload, Ledger())
    assert predictor.learn(facts.host, facts.model) == []
    ep8 = GLM.baseline.model_copy(update={"flags": {**GLM.baseline.flags, **EP8_FLAGS}})
    assert objection(ep8, Known(facts.engine, facts.host, predictor)) is None
    memory = predictor.predict(ep8).memory
    assert memory is not None
    assert memory.verdict == "tight"
    assert predictor.risk(ep8)[0] > 0.3
