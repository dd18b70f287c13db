"""What is about to be launched, as the policy and as a person see it."""

from collections.abc import Mapping

from moeagent.agent.approval.expected import expected_launch
from moeagent.agent.approval.policy import REMOVED, Ruling, Subject
from moeagent.agent.loop import Loop
from moeagent.agent.show.text import change_text, percent
from moeagent.memory.records import FlagValue, Hypothesis, ServerConfig
from moeagent.memory.records.approval import Question
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.hosts.command import masked
from moeagent.tools.hosts.wrappers import resolve

SHOWN_PORT = 20_000
"""In a command that is shown before its start; the port is chosen when the server is started."""


def rendered(loop: Loop, config: ServerConfig) -> str:
    """The command as it would run. Raises InputError for a flag that is never passed on."""
    install = install_of(loop, config)
    model = loop.surveyed.model.path
    command = loop.engine.command(config, model=model, port=SHOWN_PORT, install=install)
    if install.wrapper is not None:
        command = resolve(install.wrapper).tagged(command, "RUN/LAUNCH")
    return masked(command)


def install_of(loop: Loop, config: ServerConfig) -> EngineInstall:
    """The engine install that a configuration is launched with."""
    facts = loop.surveyed
    return facts.installs.get(config.install, facts.install)


def subject_of(loop: Loop, hypothesis: Hypothesis, config: ServerConfig) -> Subject:
    """The launch as rules see it: what changes is told against the configuration to beat."""
    expected = expected_launch(loop, config)
    change = loop.incumbent.diff(config)
    return Subject(
        command=rendered(loop, config),
        flags=_values(change.set_flags, change.remove_flags),
        env=_values(change.set_env, change.remove_env),
        source=hypothesis.source,
        risk=risk_of(loop, hypothesis, config)[0],
        gpu_hours=round(expected.gpu_hours, 6),
        cost=expected.cost,
    )


def question_of(
    loop: Loop, hypothesis: Hypothesis, attempt: int, config: ServerConfig, ruling: Ruling
) -> Question:
    """The launch as a person sees it."""
    risk, risk_why = risk_of(loop, hypothesis, config)
    expected = expected_launch(loop, config)
    return Question(
        hypothesis=hypothesis.id,
        attempt=attempt,
        statement=hypothesis.statement,
        change=change_text(loop.incumbent.diff(config)),
        command=rendered(loop, config),
        risk=risk,
        risk_why=risk_why,
        predicted=effects_text(hypothesis),
        expected_s=round(expected.total_s, 3),
        gpu_hours=round(expected.gpu_hours, 6),
        cost=expected.cost,
        why=f"{ruling.by}{': ' + ruling.reason if ruling.reason else ''}",
    )


def risk_of(loop: Loop, hypothesis: Hypothesis, config: ServerConfig) -> tuple[float, str]:
    """The hypothesis' own risk, or the predictor's for a configuration that was changed since."""
    parent = loop.configs.get(hypothesis.parent)
    if parent is not None and parent.apply(hypothesis.change) == config:
        return hypothesis.risk, hypothesis.risk_why
    risk, why = loop.predictor.risk(config)
    return round(risk, 3), why


def effects_text(hypothesis: Hypothesis) -> str:
    """The predicted effect at each concurrency."""
    return ", ".join(f"{each.concurrency}: {percent(each.effect)}" for each in hypothesis.predicted)


def _values(given: Mapping[str, FlagValue], removed: tuple[str, ...]) -> dict[str, str]:
    values = {name: "" if value is True else str(value) for name, value in given.items()}
    return values | dict.fromkeys(removed, REMOVED)
