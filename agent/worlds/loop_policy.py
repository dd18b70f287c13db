"""The loop itself as a policy: its graph, steps, judge and proposers on a world in virtual time."""

from dataclasses import dataclass, field
from functools import partial

from moeagent.agent.campaign import build_loop
from moeagent.agent.drive import drive
from moeagent.agent.events import Events
from moeagent.agent.graph import Step
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.loop import Loop, SurveyFacts
from moeagent.agent.settings import (
    BaselineSettings,
    CampaignSettings,
    EngineSettings,
    LimitSettings,
    LlmSettings,
)
from moeagent.agent.state import State
from moeagent.agent.steps import NODES
from moeagent.agent.steps.measure import ladder
from moeagent.agent.worlds.bench import Bench, Choice, Claim
from moeagent.agent.worlds.run_in_memory import MemoryFolder, memory_tape
from moeagent.agent.worlds.virtual_bench import VirtualBench
from moeagent.memory.records import VerdictKind

BASELINE_LAUNCHES = 1
"""A dozen launches are too few to repeat any: steps are taken on what one launch and the prior say."""
PIVOTS = 1
NO_LIMIT_HOURS = 1e6
"""Launches are what a contest counts."""


@dataclass(frozen=True)
class LoopPolicy:
    """The campaign loop with the playbook, or with a language model and the playbook behind it."""

    name: str = "playbook"
    llm: LlmSettings = field(default_factory=LlmSettings)

    def run(self, bench: Bench, seed: int) -> Choice:
        """One campaign; the loop draws no random numbers, so the seed changes nothing."""
        loop = loop_on(bench, self.llm)
        drive(loop, nodes_on(bench))
        incumbents = loop.ledger.incumbents
        by_hypothesis = {made.hypothesis: made.config for made in incumbents if made.hypothesis}
        claims = tuple(
            Claim(by_hypothesis[verdict.hypothesis], bench.baseline)
            for verdict in loop.ledger.verdicts
            if verdict.kind is VerdictKind.IMPROVED and verdict.hypothesis in by_hypothesis
        )
        return Choice(loop.incumbent, claims)


def loop_on(bench: Bench, llm: LlmSettings, wait_s: float | None = None) -> Loop:
    """The parts of a campaign on this world; `wait_s` bounds the waiting for a language model in all."""
    facts, baseline = bench.facts(), bench.baseline
    settings = CampaignSettings(
        engine=EngineSettings(name=baseline.engine),
        model=facts.model.path,
        baseline=BaselineSettings(
            flags=dict(baseline.flags), env=dict(baseline.env), launches=BASELINE_LAUNCHES
        ),
        workload=bench.workload,
        limits=LimitSettings(
            experiments=bench.launches, launches=bench.launches, hours=NO_LIMIT_HOURS,
            consecutive_failures=bench.launches, pivots=PIVOTS, prove_each_step=False, llm_wall_s=wait_s,
        ),
        llm=llm,
    )  # fmt: skip
    made: list[Loop] = []
    virtual = VirtualBench(bench, llm, lambda: ladder(made[0]))
    folder = MemoryFolder(bench.world.name)
    made.append(build_loop(settings, memory_tape(), folder, virtual, StopRequest(), Events()))
    return made[0]


def nodes_on(bench: Bench) -> dict[str, Step]:
    """The loop's nodes, the survey answered from the world's own facts."""
    return NODES | {"survey": partial(_surveyed, bench)}


def _surveyed(bench: Bench, loop: Loop, state: State) -> State:
    """What the survey step does, from the world's own facts."""
    facts = bench.facts()
    loop.facts = SurveyFacts(host=facts.host, engine=facts.engine, model=facts.model)
    loop.predictor.learn(facts.host, facts.model)
    return {}
