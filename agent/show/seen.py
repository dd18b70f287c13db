"""What the agent saw before each recorded decision, rebuilt from the recording: no step of the loop runs."""

from collections.abc import Iterator

from moeagent.agent.proposers.briefing import briefing
from moeagent.agent.recorded_state import RecordedState
from moeagent.agent.show.lines import rung_text
from moeagent.agent.show.text import change_text, config_text, percent, seconds
from moeagent.memory.errors import MoeagentError
from moeagent.memory.ledger import decision_of
from moeagent.memory.records import Launch
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Entry, Json, TapeFile
from moeagent.prompts.loader import load_prompt

IDEAS = 5
"""Ideas that are left, of those that a run's report names."""
LOG_LINES = 12
"""Last lines of a failed launch's log that are shown."""


def ideas_left(folder: RunFolder) -> tuple[str, ...]:
    """What the playbook would try next after the run's end, best first; empty where that cannot be told."""
    tape = folder.read_tape()
    try:
        return Seen(folder, tape).ideas_left()
    except (MoeagentError, KeyError, ValueError):
        # A tape of another version: the report does without.
        return ()


class Seen:
    """Walks a recording; ask for one place after the other, in any order."""

    def __init__(self, folder: RunFolder, tape: TapeFile) -> None:
        self._folder, self._tape = folder, tape
        self._at = tape.entries[-1].line_no

    def before(self, line: int) -> str:
        """What was known when the decision at this tape line fell; says so where it cannot be rebuilt."""
        try:
            if line <= self._at:
                self._rewind()
            self._advance(line)
            return "\n".join(self._told(self._entry(line)))
        except MoeagentError as error:
            return f"what the agent saw cannot be rebuilt by this version: {error}"

    def ideas_left(self) -> tuple[str, ...]:
        """The best of the playbook's ranking at the end that promise a gain, a sentence each."""
        self._rewind()
        self._advance(self._tape.entries[-1].line_no + 1)
        loop = self._state.loop
        if loop.facts is None or not loop.ledger.incumbents:
            return ()
        worth = loop.settings.goal.min_effect
        ranking = [r for r in loop.playbook.ranking(loop.view()) if r.gain.mean >= worth]
        return tuple(
            f"{r.candidate.statement} ({change_text(r.candidate.change)}): predicted {percent(r.gain.mean)} "
            f"[{percent(r.gain.low)}, {percent(r.gain.high)}], risk {r.candidate.risk:.0%}"
            for r in ranking[:IDEAS]
        )

    def _rewind(self) -> None:
        self._at = 0
        self._asked: Json = {}
        self._messages: list[Json] = []
        self._state = RecordedState(self._folder, self._tape.header)

    def _advance(self, line: int) -> None:
        for entry in self._tape.entries:
            if self._at < entry.line_no < line:
                self._take(entry)
                self._at = entry.line_no

    def _take(self, entry: Entry) -> None:
        match entry.type:
            case "request":
                self._asked = entry.body
                if entry.kind == "complete":
                    self._messages = entry.body["request"]["body"]["messages"]
            case "response" if "response" in entry.body:
                self._state.hear(self._asked["kind"], self._asked["request"], entry.body["response"])
            case "marker":
                self._state.amend(entry.body)
            case "decision":
                self._messages = []
                self._state.accept(decision_of(entry))

    def _entry(self, line: int) -> Entry:
        return next(entry for entry in self._tape.entries if entry.line_no == line)

    def _told(self, entry: Entry) -> Iterator[str]:
        kind, value = entry.kind, entry.body.get("value", {})
        if kind in ("hypothesis", "rejection"):
            yield from self._for_an_idea()
        elif kind == "launch":
            yield from self._for_a_launch(Launch.model_validate(value))
        elif kind == "verdict":
            yield from self._for_a_verdict(value["hypothesis"])
        else:
            yield from self._standing()

    def _standing(self) -> Iterator[str]:
        loop = self._state.loop
        if loop.facts is None:
            yield "the outputs of the survey"
            return
        budget = loop.view().budget
        yield f"best so far: {loop.incumbent_hypothesis or 'the baseline'}: {config_text(loop.incumbent)}"
        yield f"left: {budget.experiments} experiments, {budget.launches} launches, {budget.hours:g} hours"
        if self._state.failed and self._state.last and self._state.last.diagnosis:
            found = self._state.last.diagnosis
            yield f"{self._state.last.id} failed: {found.failure_class} ({found.confidence:.0%})"
            yield from (f"  remedy: {r.direction} {r.target}: {r.change}" for r in found.remedies)

    def _for_an_idea(self) -> Iterator[str]:
        """The model's own messages, or the same briefing for the playbook."""
        if self._messages:
            yield from (f"[{message['role']}]\n{message['content']}" for message in self._messages)
            return
        view, playbook = self._state.loop.view(), self._state.loop.playbook
        told = briefing(view, playbook.question(view).limits, playbook.ranking(view))
        yield load_prompt("turn").render(**told)

    def _for_a_launch(self, launch: Launch) -> Iterator[str]:
        heard = self._state.launches.get(launch.id)
        if heard is None:
            yield "nothing: the server was never started"
            return
        start = heard.start
        yield f"{start.outcome} after {seconds(start.after_s)} {start.reason}".rstrip()
        for load in heard.loads:
            died = "" if load.alive else "; the server died"
            yield f"  {load.rung.concurrency}: {rung_text(load.rung)}{died}"
        if launch.diagnosis:
            yield f"the last lines of its log, {launch.log}:"
            yield from (
                f"  {line}" for line in self._state.loop.world.text(launch.log).split("\n")[-LOG_LINES:]
            )

    def _for_a_verdict(self, hypothesis: str) -> Iterator[str]:
        ledger = self._state.loop.ledger
        idea = ledger.hypothesis(hypothesis)
        incumbent = self._state.loop.incumbent
        yield f"against {self._state.loop.incumbent_hypothesis or 'the baseline'}: {config_text(incumbent)}"
        yield from map(_launch_line, ledger.launches_of(incumbent))
        yield f"{hypothesis}: {change_text(idea.change) if idea else ''}"
        yield from map(_launch_line, ledger.launches_for(hypothesis))


def _launch_line(launch: Launch) -> str:
    rungs = ", ".join(f"{rung.concurrency}: {rung_text(rung)}" for rung in launch.rungs)
    return f"  {launch.id} {rungs or launch.outcome.value}"
