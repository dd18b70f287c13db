"""What a run has concluded so far, in order: the recorded decisions, and nothing else.

The loop appends to it while it runs; `log` and `report` rebuild it from a tape without running the loop.
"""

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from moeagent.memory.errors import LoopVersionError
from moeagent.memory.records import (
    ConfigChange,
    Effect,
    HostFacts,
    Hypothesis,
    Launch,
    ModelFacts,
    Pivot,
    Record,
    Rung,
    ServerConfig,
    Verdict,
)
from moeagent.memory.records.approval import Approval
from moeagent.memory.records.facts import Scope
from moeagent.memory.tape.lines import Entry


class CampaignFacts(Record):
    """What the survey found, without the long lists that stay in the run folder."""

    host: HostFacts
    engine: str
    engine_version: str | None
    knobs_source: str
    knob_count: int
    model: ModelFacts
    scope: Scope
    problems: tuple[str, ...] = ()


class RejectedIdea(Record):
    """An idea that was turned down before it was launched."""

    statement: str
    change: ConfigChange
    reason: str
    source: str


class Incumbent(Record):
    """The best configuration from here on."""

    config: ServerConfig
    hypothesis: str | None
    """None for the baseline."""


class Note(Record):
    """Something that the reader of the log must know: a fallback, a relaunch, a skipped rung."""

    about: str
    text: str


class Limit(Record):
    """The binding limit that the measurements name."""

    name: str
    evidence: str


class Conclusion(Record):
    """How the run ended."""

    status: str
    """finished, stopped, failed or awaiting approval."""
    reason: str
    best: ServerConfig | None = None
    best_hypothesis: str | None = None
    confirmation: str = "not-run"
    """confirmed, unresolved, refuted or not-run: what fresh launches say of the best configuration's gain."""
    confirmed_gain: Effect | None = None
    """Over the baseline, from fresh launches alone."""
    confirmation_reason: str = ""


DECISIONS: dict[str, type[Record]] = {
    "facts": CampaignFacts,
    "rejection": RejectedIdea,
    "hypothesis": Hypothesis,
    "launch": Launch,
    "pivot": Pivot,
    "verdict": Verdict,
    "incumbent": Incumbent,
    "limit": Limit,
    "note": Note,
    "approval": Approval,
    "conclusion": Conclusion,
}
_KINDS = {record: kind for kind, record in DECISIONS.items()}


class Ledger:
    """The decisions of one run."""

    def __init__(self) -> None:
        self.facts: CampaignFacts | None = None
        self.hypotheses: list[Hypothesis] = []
        self.rejections: list[RejectedIdea] = []
        self.launches: list[Launch] = []
        self.pivots: list[Pivot] = []
        self.verdicts: list[Verdict] = []
        self._last_verdict: dict[str, Verdict] = {}
        self.incumbents: list[Incumbent] = []
        self.limits: list[Limit] = []
        self.notes: list[Note] = []
        self.approvals: list[Approval] = []
        self.conclusions: list[Conclusion] = []
        self.listeners: list[Callable[[str, Record], None]] = []

    @classmethod
    def from_entries(cls, entries: Iterable[Entry]) -> "Ledger":
        """Rebuild from a tape's entries, without running the loop.

        Raises LoopVersionError at a decision that this version does not know.
        """
        ledger = cls()
        for entry in entries:
            if entry.type == "decision":
                ledger.add(decision_of(entry))
        return ledger

    def add(self, record: Record) -> None:
        """Take in one decision and tell the listeners."""
        match record:
            case CampaignFacts():
                self.facts = record
            case Hypothesis():
                self.hypotheses.append(record)
            case RejectedIdea():
                self.rejections.append(record)
            case Launch():
                self.launches.append(record)
            case Pivot():
                self.pivots.append(record)
            case Verdict():
                self.verdicts.append(record)
                self._last_verdict[record.hypothesis] = record
            case Incumbent():
                self.incumbents.append(record)
            case Limit():
                self.limits.append(record)
            case Note():
                self.notes.append(record)
            case Approval():
                self.approvals.append(record)
            case Conclusion():
                self.conclusions.append(record)
        for listener in self.listeners:
            listener(kind_of(record), record)

    @property
    def conclusion(self) -> Conclusion | None:
        """How the run ended, last time it ended."""
        return self.conclusions[-1] if self.conclusions else None

    @property
    def incumbent(self) -> Incumbent | None:
        """The best configuration so far."""
        return self.incumbents[-1] if self.incumbents else None

    @property
    def baseline(self) -> ServerConfig | None:
        """The configuration that gains are measured against."""
        return self.incumbents[0].config if self.incumbents else None

    def hypothesis(self, hypothesis_id: str) -> Hypothesis | None:
        """The hypothesis of this id."""
        return next((h for h in self.hypotheses if h.id == hypothesis_id), None)

    def verdict(self, hypothesis_id: str) -> Verdict | None:
        """The last verdict on a hypothesis: a parked one is judged again."""
        return self._last_verdict.get(hypothesis_id)

    def launches_for(self, hypothesis_id: str | None) -> list[Launch]:
        """Launches made for a hypothesis; None for the baseline's."""
        return [launch for launch in self.launches if launch.hypothesis == hypothesis_id]

    def launches_of(self, config: ServerConfig) -> list[Launch]:
        """Launches of exactly this configuration."""
        return [launch for launch in self.launches if launch.config.id == config.id]

    def pivots_for(self, hypothesis_id: str) -> list[Pivot]:
        """Remedies tried for a hypothesis."""
        return [pivot for pivot in self.pivots if pivot.hypothesis == hypothesis_id]

    def rungs_at(self, config: ServerConfig, concurrency: int) -> list[Rung]:
        """Usable rungs of a configuration at one concurrency, a launch each."""
        return [
            rung
            for launch in self.launches_of(config)
            for rung in launch.rungs
            if rung.concurrency == concurrency and rung.usable
        ]


def last_hypotheses(entries: Iterable[Entry], count: int) -> tuple[list[Entry], int]:
    """The decisions that a reader of the last hypotheses needs, and how many hypotheses are left out.

    Launches, pivots and verdicts stay where they belong to one of these, to the baseline or to the best
    configuration; everything else stays.
    """
    decisions = [entry for entry in entries if entry.type == "decision"]
    ideas = [e.body["value"].get("id", "") for e in decisions if e.kind == "hypothesis"]
    best = [e.body["value"].get("hypothesis") for e in decisions if e.kind == "incumbent"][-1:]
    shown = set(ideas[-count:])
    needed = [entry for entry in decisions if _belongs(entry, shown, {None, *best, *shown})]
    return needed, len(ideas) - len(shown)


def _belongs(entry: Entry, shown: set[str], kept: set[str | None]) -> bool:
    if entry.kind == "hypothesis":
        return entry.body["value"].get("id") in shown
    if entry.kind not in ("launch", "pivot", "verdict"):
        return True
    return entry.may_hold("hypothesis", kept) and entry.body["value"].get("hypothesis") in kept


def decision_of(entry: Entry) -> Record:
    """The decision that a line of the tape holds."""
    kind = entry.body["kind"]
    try:
        return DECISIONS[kind].model_validate(entry.body["value"])
    except (KeyError, ValidationError):
        raise LoopVersionError(
            f"tape line {entry.line_no} holds a decision {kind!r} that this version does not know: the "
            "version of moeagent that the first line of the tape names reads it"
        ) from None


def kind_of(record: Record) -> str:
    """The name of a decision on the tape."""
    return _KINDS[type(record)]


def value_of(record: Record) -> dict[str, Any]:
    """A decision as it stands on the tape."""
    return record.model_dump(mode="json", by_alias=True)
