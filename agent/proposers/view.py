"""Everything that a proposer may base its decision on, as one serialisable record.

A proposer is a function of this view (and, for the language model, of the completions that it asks for),
so a recorded view is enough to ask the same question again.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt

from moeagent.memory.records import (
    ConfigChange,
    EngineFacts,
    FlagValue,
    Goal,
    HostFacts,
    Hypothesis,
    Launch,
    ModelFacts,
    Pivot,
    Record,
    Rung,
    ServerConfig,
    Verdict,
    Workload,
)
from moeagent.memory.records.hypothesis import VerdictKind


class PriorFinding(Record):
    """What an earlier run learnt, failures included."""

    scope: str
    """Where it was learnt, in words: hardware, engine version, model."""
    change: ConfigChange
    kind: VerdictKind
    reason: str
    run: str
    """Id of the run that it came from."""
    match: Literal["exact", "relaxed"]
    """exact: same hardware, engine version and model; relaxed: something differs, so it is a hint only."""
    closeness: str = ""
    """What is the same and what differs, in words."""
    trust: float | None = None
    """0 to 1: how far it is believed here; None in runs that were recorded before it was asked."""
    effect: float | None = None
    """Relative effect on that run's goal, when one was measured."""

    @property
    def weight(self) -> float:
        """How far the finding is believed here."""
        if self.trust is not None:
            return self.trust
        return 0.9 if self.match == "exact" else 0.5


class Rejection(Record):
    """An idea that was turned down before it was launched."""

    change: ConfigChange
    reason: str


class Budget(Record):
    """What is left to spend; None means no limit."""

    experiments: NonNegativeInt | None = None
    launches: NonNegativeInt | None = None
    hours: NonNegativeFloat | None = None


class KnobLimit(Record):
    """The values of a knob that the user allows; a bound that is None does not bind."""

    low: float | None = None
    high: float | None = None
    choices: tuple[FlagValue, ...] | None = None

    def allows(self, value: FlagValue) -> bool:
        """Whether the value lies inside the limit."""
        if self.choices is not None and value not in self.choices:
            return False
        if isinstance(value, bool | str):
            return True
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


class Space(Record):
    """The user's word about knobs: pinned and forbidden ones never change, limited ones stay inside."""

    pin: tuple[str, ...] = ()
    """Keep the baseline's value."""
    forbid: tuple[str, ...] = ()
    """Never set."""
    limit: dict[str, KnobLimit] = Field(default_factory=dict)

    def objection(self, change: ConfigChange) -> str | None:
        """Why the user's settings do not allow the change, or None when they do."""
        for name in change.knobs():
            if name in self.pin:
                return f"{name} is pinned in the settings"
            if name in self.forbid and (name in change.set_flags or name in change.set_env):
                return f"{name} is forbidden in the settings"
        for name, limit in self.limit.items():
            value = change.set_flags.get(name, change.set_env.get(name))
            if value is not None and not limit.allows(value):
                return f"{name} = {value} is outside the limits in the settings"
        return None


class CampaignView(Record):
    """The campaign as a proposer sees it."""

    goal: Goal
    workload: Workload
    host: HostFacts
    engine: EngineFacts
    model: ModelFacts
    baseline: ServerConfig
    incumbent: ServerConfig
    """The best configuration so far."""
    launches: tuple[Launch, ...] = ()
    """In order; a launch carries its rungs, its diagnosis and what was in force."""
    hypotheses: tuple[Hypothesis, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    adopted: tuple[str, ...] = ()
    """Ids of the hypotheses that became the incumbent, proven or not."""
    pivots: tuple[Pivot, ...] = ()
    priors: tuple[PriorFinding, ...] = ()
    """Findings of earlier runs whose scope matches."""
    rejections: tuple[Rejection, ...] = ()
    """Of this turn and earlier turns of this run."""
    budget: Budget = Field(default_factory=Budget)
    space: Space = Field(default_factory=Space)

    def verdict(self, hypothesis: str) -> Verdict | None:
        """The verdict on the hypothesis of this id."""
        return next((v for v in self.verdicts if v.hypothesis == hypothesis), None)

    def verdicts_in(self, category: str) -> tuple[Verdict, ...]:
        """The verdicts on hypotheses of this category."""
        ours = {h.id for h in self.hypotheses if h.category == category}
        return tuple(v for v in self.verdicts if v.hypothesis in ours)

    def hypothesis(self, hypothesis_id: str | None) -> Hypothesis | None:
        """The hypothesis of this id."""
        return next((h for h in self.hypotheses if h.id == hypothesis_id), None)

    def launches_of(self, config: ServerConfig) -> tuple[Launch, ...]:
        """Every launch of exactly this configuration, in order."""
        return tuple(launch for launch in self.launches if launch.config.id == config.id)

    def rungs_of(self, config: ServerConfig) -> tuple[Rung, ...]:
        """The latest usable rung of the configuration at each concurrency, rising."""
        latest = {
            rung.concurrency: rung
            for launch in self.launches_of(config)
            for rung in launch.rungs
            if rung.usable
        }
        return tuple(latest[c] for c in sorted(latest))

    def config(self, config_id: str) -> ServerConfig | None:
        """The configuration of this id, if it was launched or is the baseline or incumbent."""
        known: Sequence[ServerConfig] = (self.baseline, self.incumbent, *(x.config for x in self.launches))
        return next((c for c in known if c.id == config_id), None)
