"""A language model that proposes badly on purpose: what it may cost over the worlds is bounded."""

import json
from statistics import mean

import pytest

from moeagent.agent.settings import LlmSettings
from moeagent.agent.worlds.contest import contest
from moeagent.agent.worlds.loop_policy import LoopPolicy
from moeagent.tools.llm.scripted import ScriptedEndpoint
from moeagent.tools.sim.families import draw_worlds

LAUNCHES = 12
MOST_DAMAGE = 0.1
BAD = (
    "--disable-cuda-graph", "--max-running-requests=8", "--schedule-conservativeness=4",
    "--chunked-prefill-size=512", "--mem-fraction-static=0.6", "--attention-backend=torch_native",
    "--max-running-requests=4", "--cuda-graph-max-bs=1", "--mem-fraction-static=0.97",
    "--max-running-requests=2", "--chunked-prefill-size=256", "--schedule-policy=priority",
)  # fmt: skip


def bad_idea(lever: str, ladder: tuple[int, ...]) -> str:
    """One that is sure of itself."""
    numbers = [{"concurrency": c, "effect": 0.5, "low": 0.45, "high": 0.55} for c in ladder]
    return json.dumps(
        {
            "action": "propose", "statement": f"{lever} brings half as much again", "reason": "trust me",
            "category": f"idea {lever}", "set": [lever], "predicted": numbers, "refuted_by": "nothing",
        }
    )  # fmt: skip


@pytest.mark.timeout(300)
def test_a_model_that_proposes_badly_costs_at_most_a_tenth() -> None:
    worlds = draw_worlds(4, seed=3)
    alone = contest(LoopPolicy(), worlds, seed=3, launches=LAUNCHES)
    harmed = []
    for world in worlds:
        with ScriptedEndpoint([bad_idea(lever, world.workload.ladder) for lever in BAD]) as model:
            policy = LoopPolicy("bad", LlmSettings(base_url=model.base_url, timeout_s=10.0))
            harmed += contest(policy, [world], seed=3, launches=LAUNCHES).worlds
            assert model.requests, "the model had turns"
    before = mean(world.best_over_oracle for world in alone.worlds)
    after = mean(world.best_over_oracle for world in harmed)
    print(f"\nthe playbook alone {before:.3f}, with a bad model {after:.3f}")
    assert after >= (1 - MOST_DAMAGE) * before
    assert all(world.false_gains == 0 for world in harmed)
