"""The state of a campaign before each of its recorded decisions, rebuilt from a tape of any version.

No step of the loop runs here: recorded answers and recorded decisions alone make the state, so it can be
rebuilt where a replay would diverge.
"""

import copy
import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from moeagent.agent.campaign import build_loop
from moeagent.agent.course import Confirming
from moeagent.agent.drive import amend_settings
from moeagent.agent.events import Events
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.settings import CampaignSettings
from moeagent.agent.steps.survey import as_prior, further_engines, read, take_in
from moeagent.agent.world import RungReport, StartReport, launches_in
from moeagent.memory.errors import TapeError
from moeagent.memory.findings.store import Finding
from moeagent.memory.ledger import CampaignFacts, Conclusion, Incumbent, Note
from moeagent.memory.records import Launch, LaunchOutcome, Pivot, Record, ServerConfig
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Json
from moeagent.memory.tape.tape import Tape
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.output_check.sample import OutputSample
from moeagent.tools.output_check.task import TaskResult
from moeagent.tools.survey.findings import as_error


@dataclass
class RecordedLaunch:
    """What the world said about one launch."""

    config: ServerConfig
    start: StartReport
    loads: list[RungReport] = field(default_factory=list)
    unanswered: bool = False
    """The server did not answer a single prompt of the workload's length."""


class RecordedState:
    """A loop whose ledger and course are those of the recording."""

    def __init__(self, folder: RunFolder, header: Json) -> None:
        self.folder = folder
        self.loop = build_loop(settings_of(header), Tape(None, None), folder, None, StopRequest(), Events())
        self.launches: dict[str, RecordedLaunch] = {}
        self.surveyed: CampaignFacts | str = "the tape holds no survey"
        """What the survey's outputs say now, or why nothing is known of them."""
        self.clocks = 0
        """Looks at the clock since the last launch: they tell which step is at work."""
        self.attempt = 0
        """Remedies tried before the last launch."""
        self.awaits_pivot = False
        """The last launch failed, and whether a remedy is tried stands next on the tape."""
        self._pivoted: Pivot | None = None

    @property
    def last(self) -> Launch | None:
        """The launch recorded last."""
        return self.loop.ledger.launches[-1] if self.loop.ledger.launches else None

    @property
    def failed(self) -> bool:
        """Whether the last launch did."""
        return self.last is not None and self.last.outcome is not LaunchOutcome.COMPLETED

    @property
    def judging_is_over(self) -> bool:
        """Whether the last launch was judged: the loop looks at the clock before a remedy, and after it."""
        return self.clocks > int(self.failed)

    @property
    def open_ideas(self) -> list[str]:
        """Hypotheses that were launched and have no verdict."""
        ledger = self.loop.ledger
        launched = dict.fromkeys(x.hypothesis for x in ledger.launches if x.hypothesis)
        return [idea for idea in launched if ledger.verdict(idea) is None]

    def amend(self, body: Json) -> None:
        """A marker: a resume may have raised limits."""
        amend_settings(self.loop, body.get("amend", {}))

    def hear(self, kind: str, request: Json, answer: Json) -> None:
        """One answer of the outside world."""
        loop = self.loop
        match kind:
            case "clock":
                loop.world.active_s = float(answer["active_s"])
                self.clocks += 1
                self.awaits_pivot = self.failed and self.clocks == 1
            case "survey":
                self._surveyed(json.loads(self.folder.text(answer["outputs"])))
            case "findings" if loop.facts is not None:
                known = (Finding.model_validate(f) for f in answer["known"])
                loop.facts.priors = tuple(as_prior(finding) for finding in known)
            case "earlier" if loop.facts is not None:
                loop.facts.earlier = launches_in(json.loads(self.folder.text(answer["launches"])))
            case "start":
                config = ServerConfig.model_validate(request["config"])
                loop.remember(config)
                self.launches[request["launch"]] = RecordedLaunch(config, StartReport.model_validate(answer))
            case "calibrate":
                self.launches[request["launch"]].unanswered = answer["words"] is None
            case "first_prompt":
                self.launches[request["launch"]].unanswered = bool(answer["problem"])
            case "load":
                self.launches[request["launch"]].loads.append(RungReport.model_validate(answer))
            case "outputs":
                kept = json.loads(self.folder.text(answer["sample"]))
                config = self.launches[request["launch"]].config
                loop.outputs.add(config, OutputSample.model_validate(kept["sample"]))
            case "task":
                self._checked(request["launch"], answer)

    def _checked(self, launch: str, answer: Json) -> None:
        self.loop.outputs.tasks[self.launches[launch].config.id] = TaskResult.model_validate(answer)

    def accept(self, record: Record) -> None:
        """One recorded decision, whatever is thought of it now."""
        open_before, best_before = self.open_ideas, self.loop.incumbent
        self.loop.ledger.add(record)
        match record:
            case Launch():
                self._launched(record)
            case Pivot():
                self._pivoted = record
            case Incumbent():
                self._rebased(record, best_before, open_before)
            case Note(about="confirmation") if self.loop.course.confirming is None:
                self.loop.course.confirming = Confirming([], len(self.loop.ledger.launches))
            case Conclusion():
                self.loop.course.confirming = None

    def _surveyed(self, outputs: dict[str, Any]) -> None:
        found = read(self.loop, outputs)
        error = as_error(found.findings)
        concluded = take_in(self.loop, found, EngineInstall.model_validate(outputs["install"]))
        self.loop.surveyed.engines = further_engines(self.loop, outputs)
        self.surveyed = concluded if error is None else str(error)

    def _launched(self, launch: Launch) -> None:
        self.clocks, self.awaits_pivot = 0, False
        self.attempt = self._pivoted.attempt if self._pivoted else 0
        self._pivoted = None
        self.loop.remember(launch.config)
        if launch.hypothesis:
            self.loop.course.candidates[launch.hypothesis] = launch.config

    def _rebased(self, made: Incumbent, before: ServerConfig, open_ideas: list[str]) -> None:
        """As the loop does: ideas that are open go on from the new incumbent."""
        self.loop.remember(made.config)
        candidates = self.loop.course.candidates
        for idea in open_ideas if made.hypothesis else ():
            candidates[idea] = made.config.apply(before.diff(candidates[idea]))


def settings_of(header: Json) -> CampaignSettings:
    """The recorded settings; those that this version does not know any more are left out.

    Raises TapeError where one that it knows has a value that it does not take.
    """
    settings = copy.deepcopy(header["settings"])
    while True:
        try:
            return CampaignSettings(**settings)
        except ValidationError as error:
            unknown = [e["loc"] for e in error.errors() if e["type"] == "extra_forbidden"]
            if not unknown:
                raise TapeError(
                    f"the tape's settings cannot be read by this version: {error.errors()[0]['msg']}. Use "
                    f"moeagent {header.get('moeagent', 'of the recording')}"
                ) from None
        for *path, name in unknown:
            owner: Any = settings
            for part in path:
                owner = owner[part]
            del owner[name]
