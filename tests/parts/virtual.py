"""A campaign of the loop itself in virtual time, with a person's answers and a price, in a second or two."""

from collections.abc import Sequence
from typing import Any

from moeagent.agent.campaign import build_loop
from moeagent.agent.events import Event, Events
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.loop import Loop
from moeagent.agent.settings import (
    BaselineSettings,
    CampaignSettings,
    EngineSettings,
    LimitSettings,
    LlmSettings,
)
from moeagent.agent.steps.measure import ladder
from moeagent.agent.worlds.bench import Bench
from moeagent.agent.worlds.run_in_memory import MemoryFolder, memory_tape
from moeagent.agent.worlds.virtual_bench import VirtualBench
from moeagent.memory.records.approval import Answer, Question
from moeagent.memory.tape.lines import Json
from moeagent.tools.sim.families import draw_worlds

(WORLD,) = draw_worlds(1, seed=3)
LADDER = (8, 64)
LAUNCHES = 12


class AskedBench(VirtualBench):
    """A virtual workbench with a person who has these answers; after them nobody is there."""

    def __init__(self, *arguments: Any, answers: Sequence[Answer]) -> None:
        super().__init__(*arguments)
        self.left = list(answers)
        self.asked: list[Question] = []

    def approve(self, question: Question) -> Json:
        """The next answer."""
        self.asked.append(question)
        return {"answer": self.left.pop(0) if self.left else "awaiting", "by": "tester"}


class Campaign:
    """A loop on a drawn world, and what it told."""

    def __init__(self, answers: Sequence[Answer] = (), **settings: Any) -> None:
        self.bench = Bench(WORLD, LAUNCHES)
        baseline = self.bench.baseline
        chosen: dict[str, Any] = {
            "engine": EngineSettings(name=baseline.engine),
            "model": self.bench.facts().model.path,
            "baseline": BaselineSettings(flags=dict(baseline.flags), env=dict(baseline.env), launches=1),
            "workload": self.bench.workload.model_copy(update={"ladder": LADDER}),
            "limits": limits(),
            **settings,
        }
        made: list[Loop] = []
        self.effects = AskedBench(self.bench, LlmSettings(), lambda: ladder(made[0]), answers=answers)
        self.events: list[Event] = []
        made.append(
            build_loop(
                CampaignSettings(**chosen),
                memory_tape(),
                MemoryFolder("virtual"),
                self.effects,
                StopRequest(),
                Events([self.events.append]),
            )
        )
        self.loop = made[0]

    def drive(self) -> Loop:
        """Run it to its end."""
        from moeagent.agent.drive import drive
        from moeagent.agent.worlds.loop_policy import nodes_on

        drive(self.loop, nodes_on(self.bench))
        return self.loop


def limits(**given: Any) -> LimitSettings:
    """Few launches, no other limit."""
    known = {"experiments": 3, "launches": LAUNCHES, "hours": 1e6, "pivots": 1, "prove_each_step": False}
    return LimitSettings(**{**known, **given})
