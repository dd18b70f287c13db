"""What the steps share: settings, the world, the ledger, and the launch that is under way."""

from dataclasses import dataclass, field
from typing import Any

from moeagent.agent.course import Course
from moeagent.agent.events import Decided, Event, Events
from moeagent.agent.limits import budget_left
from moeagent.agent.outputs import Outputs
from moeagent.agent.predictor import CampaignPredictor
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.protocol import Draft, Proposer
from moeagent.agent.proposers.view import CampaignView, PriorFinding, Rejection, Space
from moeagent.agent.settings import CampaignSettings
from moeagent.agent.world import World
from moeagent.memory.ledger import DECISIONS, Incumbent, Ledger, Note, kind_of, value_of
from moeagent.memory.records import (
    Diagnosis,
    EngineFacts,
    HostFacts,
    Launch,
    LaunchOutcome,
    ModelFacts,
    Record,
    Rung,
    ServerConfig,
    StabilityBoundary,
    canonical_json,
)
from moeagent.memory.tape.tape import Tape, rounded
from moeagent.tools.engines.effective import in_force
from moeagent.tools.engines.protocol import Engine, EngineInstall
from moeagent.tools.llm.client import ChatModel
from moeagent.tools.stats.noise import NoiseModel


@dataclass
class OpenLaunch:
    """A launch between its start and its record."""

    id: str
    hypothesis: str | None
    config: ServerConfig
    command: str = ""
    ready_after_s: float | None = None
    info: dict[str, Any] | None = None
    cmdline: tuple[str, ...] = ()
    outcome: LaunchOutcome = LaunchOutcome.COMPLETED
    why: str = ""
    rungs: list[Rung] = field(default_factory=list)
    planned: tuple[int, ...] = ()


@dataclass
class SurveyFacts:
    """What the survey found, whole."""

    host: HostFacts
    engine: EngineFacts
    model: ModelFacts
    install: EngineInstall = field(default_factory=EngineInstall)
    """The engine install that launches use unless a configuration names another."""
    installs: dict[str, EngineInstall] = field(default_factory=dict)
    """Further installs by name."""
    engines: dict[str, EngineFacts] = field(default_factory=dict)
    """What those of them that answer say of themselves."""
    priors: tuple[PriorFinding, ...] = ()
    earlier: tuple[tuple[Launch, ...], ...] = ()
    """Launches of the baseline in earlier runs on this machine, run by run."""


@dataclass
class Loop:
    """One campaign in memory; everything in it is derived from the tape."""

    settings: CampaignSettings
    tape: Tape
    world: World
    engine: Engine
    ledger: Ledger
    playbook: Playbook
    proposer: Proposer
    predictor: CampaignPredictor
    chat: ChatModel | None = None
    """The language model, where one is configured; its limits count over all that it is asked."""
    events: Events = field(default_factory=Events)
    configs: dict[str, ServerConfig] = field(default_factory=dict)
    facts: SurveyFacts | None = None
    outputs: Outputs = field(default_factory=Outputs)
    course: Course = field(default_factory=Course)
    draft: Draft | None = None
    drafts: dict[str, Draft] = field(default_factory=dict)
    open: OpenLaunch | None = None
    noise: tuple[int, NoiseModel] | None = None
    """The noise floor, with the number of launches that it was taken from."""
    words: int | None = None
    """Words of a prompt of the workload's length; None until the first server is up."""

    def decide(self, record: Record) -> None:
        """Write a conclusion to the tape, the ledger and whoever watches."""
        kind, value = kind_of(record), rounded(value_of(record))
        self.tape.decide(kind, value)
        # What follows rests on the record as the tape holds it, to the last digit and in its order.
        kept = DECISIONS[kind].model_validate_json(canonical_json(value))
        self.ledger.add(kept)
        self.emit(Decided(kind, kept))

    def emit(self, event: Event) -> None:
        """Tell whoever watches."""
        self.events.emit(event)

    def note(self, about: str, text: str) -> None:
        """Record something that the reader of the log must know."""
        self.decide(Note(about=about, text=text))

    def remember(self, config: ServerConfig) -> str:
        """Keep a configuration; returns its id."""
        self.configs[config.id] = config
        return config.id

    @property
    def surveyed(self) -> SurveyFacts:
        """The survey's facts; asked only after the survey."""
        assert self.facts is not None
        return self.facts

    @property
    def launching(self) -> OpenLaunch:
        """The launch under way; asked only while one is."""
        assert self.open is not None
        return self.open

    @property
    def incumbent(self) -> ServerConfig:
        """The best configuration so far; the baseline's configuration before the first verdict."""
        return self.ledger.incumbent.config if self.ledger.incumbent else self.baseline

    @property
    def incumbent_hypothesis(self) -> str | None:
        """The hypothesis that made the incumbent; None for the baseline."""
        return self.ledger.incumbent.hypothesis if self.ledger.incumbent else None

    @property
    def baseline(self) -> ServerConfig:
        """The configuration that gains are measured against."""
        return self.ledger.baseline or baseline_config(self.settings)

    def promote(self, config: ServerConfig, hypothesis: str | None) -> None:
        """Make a configuration the incumbent."""
        self.decide(Incumbent(config=config, hypothesis=hypothesis))

    def close_launch(self, diagnosis: Diagnosis | None, log_text: str, log: str | None) -> Launch:
        """Record the launch under way and forget it."""
        draft = self.launching
        info = draft.info if draft.outcome is not LaunchOutcome.REFUSED else None
        launch = Launch(
            id=draft.id,
            hypothesis=draft.hypothesis,
            config=draft.config,
            command=draft.command,
            outcome=draft.outcome,
            ready_after_s=draft.ready_after_s,
            effective=in_force(self.engine, info, log_text, draft.cmdline),
            memory=self.engine.memory(log_text),
            rungs=tuple(draft.rungs),
            boundary=boundary(draft),
            diagnosis=diagnosis,
            log=log,
            simulated=self.surveyed.host.simulated,
        )
        self.decide(launch)
        self.open = None
        return launch

    def view(self) -> CampaignView:
        """The campaign as a proposer sees it."""
        facts, ledger = self.surveyed, self.ledger
        settings = self.settings
        return CampaignView(
            goal=settings.goal,
            workload=settings.workload,
            host=facts.host,
            engine=facts.engine,
            model=facts.model,
            baseline=self.baseline,
            incumbent=self.incumbent,
            launches=tuple(ledger.launches),
            hypotheses=tuple(ledger.hypotheses),
            verdicts=tuple(v for h in ledger.hypotheses if (v := ledger.verdict(h.id))),
            adopted=tuple(made.hypothesis for made in ledger.incumbents if made.hypothesis),
            pivots=tuple(ledger.pivots),
            priors=facts.priors,
            rejections=tuple(Rejection(change=r.change, reason=r.reason) for r in ledger.rejections),
            budget=budget_left(settings.limits, ledger, self.world.active_s),
            space=Space(pin=settings.space.pin, forbid=settings.space.forbid, limit=settings.space.limit),
        )


def baseline_config(settings: CampaignSettings) -> ServerConfig:
    """The configuration that the settings name as the baseline."""
    baseline = settings.baseline
    flags = {name: value for name, value in baseline.flags.items() if value is not False}
    return ServerConfig(engine=settings.engine.name, flags=flags, env=baseline.env)


def boundary(draft: OpenLaunch) -> StabilityBoundary | None:
    """Last good and first failed concurrency of a launch that died under load."""
    if draft.outcome is not LaunchOutcome.DIED_SERVING:
        return None
    good = [rung.concurrency for rung in draft.rungs if rung.usable]
    bad = [rung.concurrency for rung in draft.rungs if not rung.usable]
    return StabilityBoundary(last_good=max(good, default=None), first_failed=min(bad, default=None))
