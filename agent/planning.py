"""What a campaign would run, told without running it: the survey is the only thing that touches the host."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from moeagent.agent.approval.expected import expected_launch
from moeagent.agent.approval.policy import Ruling, rule_on
from moeagent.agent.approval.question import SHOWN_PORT, install_of, rendered, subject_of
from moeagent.agent.loop import Loop, SurveyFacts
from moeagent.agent.own_ideas import OwnIdeasFirst
from moeagent.agent.proposers.protocol import Draft, Proposer
from moeagent.agent.proposers.view import Rejection
from moeagent.agent.servers import GRACE_S
from moeagent.agent.show.text import change_text
from moeagent.agent.spending import no_more_launches
from moeagent.agent.steps.baseline import baseline
from moeagent.agent.steps.survey import survey
from moeagent.agent.steps.vet import objection
from moeagent.agent.validation import sure_death
from moeagent.memory.errors import InputError
from moeagent.memory.records import (
    HostFacts,
    Hypothesis,
    ModelFacts,
    PredictedEffect,
    Record,
    ServerConfig,
)
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.wrapping import through_wrapper
from moeagent.tools.hosts.command import Command, masked
from moeagent.tools.hosts.wrappers import resolve
from moeagent.tools.survey.commands import survey_commands

NO_SURVEY = "the host was not surveyed"


class Named(Record):
    """One command of the survey."""

    name: str
    command: str


class PlannedLaunch(Record):
    """One launch: its commands, what is expected of it, and what would be said to it."""

    title: str
    why: str = ""
    source: str = "user"
    change: str = ""
    """Against the baseline."""
    config: str
    """Id of the ServerConfig."""
    start: str
    """The server's command with its environment; empty for one that is never passed on."""
    load: str
    """The same load by hand."""
    stop: str
    preflight: str = ""
    """Why it would be turned down before the launch; empty when nothing stands against it."""
    memory: str = ""
    """The verdict on GPU memory, with the figure that decides."""
    predicted: tuple[PredictedEffect, ...] = ()
    """Effect on output tok/s against the baseline."""
    tok_s: dict[int, float] = Field(default_factory=dict)
    """Predicted output tok/s by concurrency."""
    risk: float = 0.0
    risk_why: str = ""
    minutes: float
    gpu_hours: float
    cost: float | None = None
    basis: str
    approval: Ruling


class CampaignPlan(Record):
    """Everything that would happen until the first verdicts."""

    host: str
    simulated: bool
    surveyed: bool
    engine: str
    model: str
    problems: tuple[str, ...] = ()
    """What the survey found, and what cannot be predicted."""
    survey: tuple[Named, ...]
    baseline_launches: int
    launches: tuple[PlannedLaunch, ...]
    """The baseline, then the first ideas."""
    no_more_ideas: str = ""
    ended_before: str = ""
    """The limit that keeps even the first launch from being made."""
    minutes: float
    """Of the launches listed, the baseline's repeats included."""
    gpu_hours: float
    cost: float | None = None


def take_stock(loop: Loop, *, offline: bool) -> tuple[str, ...]:
    """The survey, or the engine's catalogue in its place; then the baseline. Returns what was found."""
    if offline:
        _without_survey(loop)
    else:
        survey(loop, {})
    baseline(loop, {})
    return loop.ledger.facts.problems if loop.ledger.facts else (f"{NO_SURVEY}: nothing is predicted",)


def _without_survey(loop: Loop) -> None:
    """Flags as the catalogue knows them; nothing about the machine and the model's content."""
    settings = loop.settings
    engine = settings.engine
    install = through_wrapper(EngineInstall(command=engine.command, env=engine.env, wrapper=engine.wrapper))
    loop.facts = SurveyFacts(
        host=HostFacts(name=settings.host.target, machine_id=""),
        engine=loop.engine.facts({}, install),
        model=ModelFacts(path=settings.model),
        install=install,
        installs={each.name: through_wrapper(each) for each in engine.install},
    )


def plan_of(loop: Loop, ideas: int, problems: tuple[str, ...]) -> CampaignPlan:
    """The plan of a campaign whose survey was taken in."""
    facts, settings = loop.surveyed, loop.settings
    drafts = Drafts(loop, ideas)
    launches = (_baseline(loop), *(_idea(loop, n, draft) for n, draft in enumerate(drafts, 1)))
    repeats = (settings.baseline.launches, *([1] * (len(launches) - 1)))
    costs = [x.cost * n for x, n in zip(launches, repeats, strict=True) if x.cost is not None]
    return CampaignPlan(
        host=facts.host.name,
        simulated=facts.host.simulated,
        surveyed=loop.ledger.facts is not None,
        engine=f"{facts.engine.engine} {facts.engine.version or '(version unknown)'}",
        model=facts.model.path,
        problems=problems,
        survey=tuple(
            Named(name=probe.name, command=masked(probe.command))
            for probe in survey_commands(loop.engine, facts.install, facts.model.path or None)
        ),
        baseline_launches=settings.baseline.launches,
        launches=launches,
        no_more_ideas=drafts.ended,
        ended_before=no_more_launches(loop),
        minutes=round(sum(x.minutes * n for x, n in zip(launches, repeats, strict=True)), 2),
        gpu_hours=round(sum(x.gpu_hours * n for x, n in zip(launches, repeats, strict=True)), 3),
        cost=round(sum(costs), 2) if costs else None,
    )


@dataclass
class Drafts:
    """The engineer's ideas, then the playbook's best ones, as they stand before any measurement."""

    loop: Loop
    count: int
    ended: str = ""
    """Why there are fewer than were asked for."""

    def __iter__(self) -> Iterator[Draft]:
        loop, view = self.loop, self.loop.view()
        proposer: Proposer = loop.playbook
        if loop.settings.idea:
            proposer = OwnIdeasFirst(loop.settings.idea, loop.playbook, loop.predictor)
        for _ in range(self.count):
            proposal = proposer.propose(view)
            if not isinstance(proposal, Draft):
                self.ended = proposal.reason
                return
            yield proposal
            listed = Rejection(change=proposal.change, reason="it stands in the plan")
            view = view.model_copy(update={"rejections": (*view.rejections, listed)})


def _baseline(loop: Loop) -> PlannedLaunch:
    config = loop.baseline
    risk, why = loop.predictor.risk(config)
    allowed = Ruling(action="allow", by="the settings", reason="the baseline is the engineer's own")
    return PlannedLaunch(
        title="baseline",
        preflight=sure_death(config, loop) or "",
        risk=round(risk, 3),
        risk_why=why,
        approval=allowed,
        **_expected(loop, config, "L1"),
    )


def _idea(loop: Loop, number: int, draft: Draft) -> PlannedLaunch:
    hypothesis = draft.numbered(f"H{number}")
    parent = loop.configs[draft.parent]
    config = parent.apply(draft.change)
    preflight = objection(loop, draft, parent) or ""
    return PlannedLaunch(
        title=f"{hypothesis.id}: {hypothesis.statement}",
        why=hypothesis.reason,
        source=hypothesis.source,
        change=change_text(draft.change),
        preflight=preflight,
        predicted=hypothesis.predicted,
        risk=hypothesis.risk,
        risk_why=hypothesis.risk_why,
        approval=_ruling(loop, hypothesis, config, preflight),
        **_expected(loop, config, f"L{loop.settings.baseline.launches + number}"),
    )


def _ruling(loop: Loop, hypothesis: Hypothesis, config: ServerConfig, preflight: str) -> Ruling:
    if preflight:
        return Ruling(action="deny", by="preflight", reason="it does not come to the approval")
    return rule_on(loop.settings.policy, loop.settings.approve, subject_of(loop, hypothesis, config))


def _expected(loop: Loop, config: ServerConfig, launch: str) -> dict[str, Any]:
    """What is the same for the baseline and for an idea."""
    expected, prediction = expected_launch(loop, config), loop.predictor.predict(config)
    memory = prediction.memory
    return {
        "config": config.id,
        "start": _command(loop, config),
        "load": _load(loop),
        "stop": stop_text(loop, config, launch),
        "memory": f"{memory.verdict.replace('_', ' ')}: {memory.why}" if memory else "",
        "tok_s": {rung.concurrency: round(rung.output_tok_s.value, 1) for rung in prediction.rungs},
        "minutes": round(expected.total_s / 60, 2),
        "gpu_hours": round(expected.gpu_hours, 4),
        "cost": expected.cost,
        "basis": expected.basis,
    }


def _command(loop: Loop, config: ServerConfig) -> str:
    try:
        return rendered(loop, config)
    except InputError:
        return ""


def _load(loop: Loop) -> str:
    """`moeagent bench` with the ladder of the campaign."""
    workload = loop.settings.workload
    words = (
        "moeagent", "bench", f"http://127.0.0.1:{SHOWN_PORT}", "--model", loop.surveyed.model.path,
        "--concurrency", ",".join(map(str, workload.ladder)), "--input-len", str(workload.input_len),
        "--output-len", str(workload.output_len), "--deadline", f"{loop.settings.rung_timeout_s:g}",
    )  # fmt: skip
    return masked(Command(words))


def stop_text(loop: Loop, config: ServerConfig, launch: str) -> str:
    """How the server is stopped."""
    tag = f"RUN/{launch}"
    spec = install_of(loop, config).wrapper
    first = ""
    if spec is not None:
        wrapper = resolve(spec)
        fill = {"tag": tag, "grace_s": f"{GRACE_S:g}", "script": "SCRIPT", "id": "ID"}
        words = wrapper.filled(wrapper.declared.stop, **fill)
        first = f"{masked(Command(words))} for what carries {tag}; "
    then = "then processes, port and GPU memory are looked at"
    return f"{first}SIGTERM to every process of MOEAGENT_TAG={tag}, SIGKILL after {GRACE_S:g} s; {then}"
