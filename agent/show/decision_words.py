"""A decision in words that two runs can share: what it is about, and what it says."""

from moeagent.agent.show.lines import rung_text
from moeagent.agent.show.text import change_text, config_text, percent, verdict_effect_text
from moeagent.agent.show.visible import short
from moeagent.memory.ledger import CampaignFacts, Conclusion, Incumbent, Ledger, Limit, Note, RejectedIdea
from moeagent.memory.records import Hypothesis, Launch, Pivot, Record, ServerConfig, Verdict


def words(record: Record, ledger: Ledger) -> tuple[str, str]:
    """(what it is about, what it says); ids are no part of it: two runs count for themselves."""
    match record:
        case CampaignFacts():
            return "", f"{record.scope.gpu}, {record.engine} {record.engine_version}, {record.scope.model}"
        case Hypothesis():
            told = ", ".join(f"{p.concurrency}: {percent(p.effect)}" for p in record.predicted)
            return change_text(record.change), f"{record.source}, predicted {told or 'nothing'}"
        case RejectedIdea():
            return change_text(record.change), record.reason
        case Launch():
            return _changed(record.config, ledger), _launch_words(record)
        case Pivot():
            return record.remedy, f"attempt {record.attempt}"
        case Verdict():
            idea = ledger.hypothesis(record.hypothesis)
            subject = change_text(idea.change) if idea else ""
            return subject, f"{record.kind.value} {verdict_effect_text(record)}: {record.reason}"
        case Incumbent():
            return _changed(record.config, ledger), "the best from here on"
        case Limit():
            return record.name, record.evidence
        case Note():
            return record.about, record.text
        case Conclusion():
            return "", f"{record.status}: {record.reason}; {record.confirmation}"
    return "", short(record.model_dump_json())


def _changed(config: ServerConfig, ledger: Ledger) -> str:
    baseline = ledger.baseline or config
    return "the baseline" if config == baseline else change_text(baseline.diff(config)) or config_text(config)


def _launch_words(launch: Launch) -> str:
    rungs = ", ".join(f"{rung.concurrency}: {rung_text(rung)}" for rung in launch.rungs)
    cause = f", {launch.diagnosis.failure_class}" if launch.diagnosis else ""
    return f"{launch.outcome.value}{cause}; {rungs or 'no rung'}"
