"""Each decision of the loop as a few plain lines, for a terminal and for a log file alike."""

from moeagent.agent.show.plain import Text
from moeagent.agent.show.power import power_sentence
from moeagent.agent.show.text import (
    SIMULATED,
    STYLES,
    change_text,
    config_text,
    percent,
    rate,
    seconds,
    verdict_effect_text,
)
from moeagent.memory.ledger import CampaignFacts, Conclusion, Incumbent, Limit, Note, RejectedIdea
from moeagent.memory.records import Hypothesis, Launch, Pivot, Record, Rung, Verdict
from moeagent.memory.records.approval import Approval


def lines_of(record: Record) -> list[Text]:
    """What a person wants to read of this decision."""
    match record:
        case CampaignFacts():
            return _facts(record)
        case Hypothesis():
            return _hypothesis(record)
        case RejectedIdea():
            return [Text(f"  turned down: {record.statement}: {record.reason}", style="dim")]
        case Launch():
            return _launch(record)
        case Pivot():
            return [Text(f"  pivot {record.attempt}: {record.remedy}", style="magenta")]
        case Verdict():
            return _verdict(record)
        case Incumbent():
            who = f"new best from {record.hypothesis}" if record.hypothesis else "baseline"
            return [Text(f"{who}: {config_text(record.config)}", style="cyan")]
        case Limit():
            return [Text(f"  binding limit: {record.name} ({record.evidence})", style="dim")]
        case Note():
            return [Text(f"  note on {record.about}: {record.text}", style="yellow")]
        case Approval():
            why = f": {record.reason}" if record.reason else ""
            return [Text(f"  {record.answer} by {record.by}{why}", style="" if record.passed else "yellow")]
        case Conclusion():
            return [Text(f"{record.status}: {record.reason}", style="bold")]
    return []


def _facts(facts: CampaignFacts) -> list[Text]:
    scope = facts.scope
    gpus = f"{scope.gpu_count} x {scope.gpu}" if scope.gpu_count else scope.gpu
    lines = [Text(SIMULATED, style="bold yellow")] if scope.simulated else []
    engine = f"{facts.engine} {facts.engine_version or '(version unknown)'}"
    flags = f"{facts.knob_count} flags from its {facts.knobs_source or 'catalogue'}"
    lines.append(Text(f"host {facts.host.name}: {gpus}; {engine}, {flags}; model {facts.model.path}"))
    return [*lines, *(Text(f"  {problem}", style="yellow") for problem in facts.problems)]


def _hypothesis(hypothesis: Hypothesis) -> list[Text]:
    lines = [
        Text.assemble((f"{hypothesis.id} ", "bold"), hypothesis.statement),
        Text(f"  {change_text(hypothesis.change)}", style="cyan"),
        Text(f"  because {hypothesis.reason}", style="dim"),
    ]
    if hypothesis.predicted:
        told = ", ".join(f"{p.concurrency}: {percent(p.effect)}" for p in hypothesis.predicted)
        lines.append(Text(f"  predicted {told}", style="dim"))
    if hypothesis.risk >= 0.1:
        lines.append(Text(f"  risk {hypothesis.risk:.0%}: {hypothesis.risk_why}", style="yellow"))
    return lines


def _launch(launch: Launch) -> list[Text]:
    rungs = [f"{r.concurrency}: {rung_text(r)}" for r in launch.rungs]
    ready = f"ready after {seconds(launch.ready_after_s)}; " if launch.ready_after_s is not None else ""
    told = f"output tok/s at {', '.join(rungs)}" if rungs else launch.outcome.value
    lines = [Text(f"  {launch.id} {ready}{told}", style="" if not launch.diagnosis else "red")]
    spoilt = [rung for rung in launch.rungs if rung.throughput_invalid]
    lines += [Text(f"  {rung.concurrency}: {rung.invalid}", style="dim") for rung in spoilt]
    told = power_sentence(launch.rungs[-1]) if launch.rungs else ""
    lines += [Text(f"  {told}", style="dim")] if told else []
    if launch.boundary:
        good, bad = launch.boundary.last_good or "-", launch.boundary.first_failed or "-"
        lines.append(Text(f"  stability boundary: good at {good}, failed at {bad}", style="red"))
    if launch.diagnosis:
        found = launch.diagnosis
        lines.append(Text(f"  cause: {found.failure_class} ({found.confidence:.0%})", style="bold red"))
        if found.root_line:
            lines.append(Text(f"  line {found.line_no}: {found.root_line[:300]}", style="red"))
    return lines


def rung_text(rung: Rung) -> str:
    """Output tok/s, or in a word why there is no figure."""
    if rung.usable:
        return rate(rung.output_tok_s)
    if rung.throttled:
        return "throttled"
    return "invalid" if rung.throughput_invalid else f"{rung.failed} failed"


def _verdict(verdict: Verdict) -> list[Text]:
    return [
        Text.assemble(
            (f"{verdict.hypothesis} ", "bold"),
            (verdict.kind.value, STYLES[verdict.kind]),
            f"  {verdict_effect_text(verdict)}  {verdict.reason}",
        )
    ]
