"""Look at host, engine and model; what would fail in an hour fails here in a second."""

import base64
from typing import Any

from moeagent.agent.loop import Loop, SurveyFacts
from moeagent.agent.proposers.view import PriorFinding
from moeagent.agent.state import State
from moeagent.memory.findings.store import Finding, workload_text
from moeagent.memory.ledger import CampaignFacts
from moeagent.memory.records import EngineFacts, HostFacts, ModelFacts, Scope
from moeagent.tools.engines.probing import answered
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.wrapping import through_wrapper
from moeagent.tools.hosts.protocol import CommandResult
from moeagent.tools.survey.findings import as_error
from moeagent.tools.survey.survey import Survey, parse_survey


def survey(loop: Loop, state: State) -> State:
    """Facts, scope and what earlier runs know in it. Raises the error of every fatal finding."""
    recorded = loop.world.survey()
    found, install = read(loop, recorded), EngineInstall.model_validate(recorded["install"])
    error = as_error(found.findings)
    if error is not None:
        raise error
    concluded = take_in(loop, found, install)
    loop.surveyed.engines = further_engines(loop, recorded)
    for name in sorted(loop.surveyed.installs.keys() - loop.surveyed.engines.keys()):
        loop.note(f"install {name}", f"{loop.engine.name} does not answer there: it is not tried")
    goal = loop.settings.goal.name
    known = loop.world.known(concluded.scope, workload_text(loop.settings.workload), goal)
    loop.surveyed.priors = tuple(as_prior(finding) for finding in known)
    loop.decide(concluded)
    return {}


def take_in(loop: Loop, found: Survey, install: EngineInstall) -> CampaignFacts:
    """Keep the facts whole for the steps and the predictor; returns what of them is decided."""
    model = found.model or ModelFacts(path=loop.settings.model)
    loop.facts = SurveyFacts(
        host=found.host,
        engine=found.engine,
        model=model,
        install=install,
        installs={each.name: through_wrapper(each) for each in loop.settings.engine.install},
    )
    unknown = loop.predictor.learn(found.host, model)
    return CampaignFacts(
        host=found.host,
        engine=found.engine.engine,
        engine_version=found.engine.version,
        knobs_source=found.engine.source,
        knob_count=len(found.engine.knobs),
        model=model.model_copy(update={"config": {}}),
        scope=scope_of(found, model),
        problems=(*(f.line() for f in found.findings if f.severity == "warning"), *unknown),
    )


def read(loop: Loop, recorded: dict[str, Any]) -> Survey:
    """Facts and findings from the recorded outputs."""
    return parse_survey(
        {name: _result(output) for name, output in recorded["outputs"].items()},
        engine=loop.engine,
        install=EngineInstall.model_validate(recorded["install"]),
        model=recorded["model"] or None,
        host_name=loop.settings.host.target,
        simulated=recorded["simulated"],
    )


def further_engines(loop: Loop, recorded: dict[str, Any]) -> dict[str, EngineFacts]:
    """The further installs by their own word, as far as they answer."""
    found = {}
    for name, asked in recorded.get("further", {}).items():
        outputs = {probe: _result(output) for probe, output in asked["outputs"].items()}
        if answered(outputs):
            found[name] = loop.engine.facts(outputs, EngineInstall.model_validate(asked["install"]))
    return found


def _result(output: dict[str, Any]) -> CommandResult:
    return CommandResult(
        output["exit_code"], base64.b64decode(output["stdout"]), base64.b64decode(output["stderr"])
    )


def scope_of(found: Survey, model: ModelFacts) -> Scope:
    """Where this campaign's findings hold."""
    gpus = found.host.gpus
    return Scope(
        gpu=gpus[0].name if gpus else processor(found.host),
        gpu_count=len(gpus),
        engine=found.engine.engine,
        engine_version=found.engine.version,
        model=model.path.rstrip("/").rpartition("/")[2],
        simulated=found.host.simulated,
    )


def processor(host: HostFacts) -> str:
    """What stands for the GPU on a machine without one."""
    return f"CPU, {host.cpu_cores or 'unknown'} cores"


def as_prior(finding: Finding) -> PriorFinding:
    """A finding as the proposers see it."""
    scope = finding.scope
    where = f"{scope.gpu_count} x {scope.gpu}, {scope.engine} {scope.engine_version or '?'}, {scope.model}"
    return PriorFinding(
        scope=f"{where}, {finding.workload}, {finding.goal}",
        change=finding.change,
        kind=finding.kind,
        reason=finding.reason,
        run=finding.run,
        match="exact" if finding.exact else "relaxed",
        effect=finding.effect,
        closeness=finding.closeness,
        trust=finding.trust,
    )
