"""The loop's part of a campaign, as thin as it can be: it launches what the judge asks for."""

from dataclasses import dataclass, field

from placebo_server import PlaceboMachine

from moeagent.agent.judge import Case, Judgement, judge
from moeagent.memory.records import ConfigChange, Effect, Goal, Hypothesis, Launch, ServerConfig, VerdictKind
from moeagent.tools.stats.allocate import OpenIdea, Step, next_step
from moeagent.tools.stats.assess import Assessment, assess
from moeagent.tools.stats.boundary import Plan
from moeagent.tools.stats.confirm import (
    Confirmation,
    confirm,
    confirmation_plan,
    launches_to_keep,
    overall_gain,
)
from moeagent.tools.stats.noise import NoiseModel, noise_model

BASELINE = ServerConfig(engine="sglang", flags={"--tp-size": 8})
BASELINE_LAUNCHES = 3


@dataclass
class Campaign:
    """Ideas 0, 1, ... against one machine."""

    machine: PlaceboMachine
    plan: Plan
    goal: Goal
    claims: list[int] = field(default_factory=list)
    """Ideas that were called improved, in order."""
    confirmation: Confirmation | None = None
    launches: dict[str, list[Launch]] = field(default_factory=dict)
    """By configuration."""
    champion: ServerConfig = BASELINE
    claimed: Effect | None = None
    """The champion's gain, by its verdict."""
    open: dict[int, Assessment] = field(default_factory=dict)

    def run(self) -> "Campaign":
        """To the end of the launches or of the ideas, confirmation included."""
        for _ in range(BASELINE_LAUNCHES):
            self._launch(BASELINE)
        waiting = list(range(self.plan.ideas))
        at_work: int | None = None
        while (step := self._next(at_work, more_ideas=bool(waiting))).kind != "finish":
            if step.kind == "launch-incumbent":
                self._launch(self.champion)
                self._judge(list(self.open))
                continue
            at_work = waiting.pop(0) if step.kind == "propose" else int(step.idea or 0)
            self._launch(self._candidate(at_work))
            self._judge([at_work])
        if self.claims:
            self._confirm()
        return self

    @property
    def reserve(self) -> int:
        """Launches kept for the confirmation."""
        return launches_to_keep(self.plan, self.claimed, self.noise.goal)

    @property
    def left(self) -> int:
        """Launches left."""
        return self.plan.launches - self.machine.launched

    def _next(self, at_work: int | None, *, more_ideas: bool) -> Step:
        return next_step(
            [OpenIdea(idea=str(i), assessment=a) for i, a in self.open.items()],
            fresh=str(at_work),
            more_ideas=more_ideas,
            noise_sd=self.noise.goal.cautious().sd,
            launches_left=self.left,
            reserve=self.reserve,
        )

    def _candidate(self, idea: int) -> ServerConfig:
        return self.champion.apply(self._hypothesis(idea).change)

    def _hypothesis(self, idea: int) -> Hypothesis:
        return Hypothesis(
            id=f"H{idea}",
            statement="this flag makes it faster",
            reason="hope",
            change=ConfigChange(set_flags={f"--idea-{idea}": True}),
            parent=self.champion.id,
            refuted_by="no gain",
            source="search",
        )

    def _launch(self, config: ServerConfig) -> Launch:
        launch = self.machine.launch(config, None)
        self.launches.setdefault(config.id, []).append(launch)
        everything = [x for group in self.launches.values() for x in group]
        self.noise: NoiseModel = noise_model(self.goal, everything)
        return launch

    def _judge(self, ideas: list[int]) -> None:
        for idea in ideas:
            candidate = self._candidate(idea)
            found = self._judgement(idea, candidate)
            self.open.pop(idea, None)
            if found.verdict is None:
                self.open[idea] = found.assessment
            elif found.verdict.kind is VerdictKind.IMPROVED:
                self.claims.append(idea)
                self.claimed = found.verdict.supported_gain
                self.champion = candidate
                self._start_again()
                return

    def _judgement(self, idea: int, candidate: ServerConfig) -> Judgement:
        return judge(
            Case(
                hypothesis=self._hypothesis(idea),
                goal=self.goal,
                incumbent=tuple(self.launches[self.champion.id]),
                candidate=tuple(self.launches.get(candidate.id, ())),
                noise=self.noise,
                plan=self.plan,
                launches_left=self.left - self.reserve,
            )
        )

    def _start_again(self) -> None:
        """Open ideas are tried on the new champion."""
        self._judge(list(self.open))

    def _confirm(self) -> None:
        baseline, champion = self.launches[BASELINE.id], self.launches[self.champion.id]
        claimed = assess(self.goal, baseline, champion, self.noise, plan=self.plan, launches_left=0)
        assert claimed.goal_effect is not None
        plan = confirmation_plan(claimed.goal_effect, self.noise.goal, launches_left=self.left)
        fresh: dict[str, list[Launch]] = {"incumbent": [], "candidate": []}
        for side in plan.order:
            fresh[side].append(self._launch(BASELINE if side == "incumbent" else self.champion))
        overall = overall_gain(self.goal, baseline, champion, self.noise)
        self.confirmation = confirm(
            self.goal, fresh["incumbent"], fresh["candidate"], self.noise, overall=overall
        )
