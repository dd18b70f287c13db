"""The loop's only door to the outside: each method is one event on the tape.

A method's request holds everything that the answer may depend on, and names servers by launch id, never by
process or port. The answers are what the world said; reading them is pure code elsewhere.
"""

from collections.abc import Callable, Sequence
from typing import Any

from moeagent.agent.effects import Effects
from moeagent.agent.interrupt import StopRequest
from moeagent.memory.findings.alike import Alike
from moeagent.memory.findings.store import Finding
from moeagent.memory.records import Launch, Record, Rung, Scope, ServerConfig, canonical_json
from moeagent.memory.records.approval import Question, Said
from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Json
from moeagent.memory.tape.tape import Tape
from moeagent.tools.output_check.sample import OutputSample
from moeagent.tools.output_check.task import TaskResult


class StartReport(Record):
    """How a start-up went."""

    outcome: str
    """ready, died, hung or refused."""
    command: str
    """As it ran, quoted for a shell, secrets masked."""
    after_s: float
    exit_code: int | None = None
    stage: str = ""
    log: str | None = None
    """Name of the log so far in the run folder."""
    info: dict[str, Any] | None = None
    """The engine's own word on its settings, where it has an endpoint for it."""
    cmdline: tuple[str, ...] = ()
    """The words of the process once it was ready, secrets masked; empty where the host shows none."""
    reason: str = ""


class Calibration(Record):
    """The prompt length in words."""

    words: int | None
    """None when the server did not answer a single prompt of this length."""
    problem: str = ""


class RungReport(Record):
    """What one rung of the load gave, and how the server is after it."""

    rung: Rung
    alive: bool
    exit_code: int | None = None
    relaunched: bool = False
    """The server was gone when the run was resumed, and was started again before this rung."""
    cut: int = 0
    """How often a broken connection or a reboot spoiled the rung, which was then measured anew."""


class StopReport(Record):
    """The end of a server."""

    verified: bool
    log: str | None
    problems: tuple[str, ...] = ()


def launches_in(value: Any) -> tuple[tuple[Launch, ...], ...]:
    """Launches run by run, from what `dumped` made of them."""
    return tuple(tuple(Launch.model_validate(launch) for launch in run) for run in value)


def dumped(runs: Sequence[Sequence[Launch]]) -> list[list[Json]]:
    """Launches run by run as the tape keeps them."""
    return [[launch.model_dump(mode="json", by_alias=True) for launch in run] for run in runs]


class World:
    """Typed effects over the tape."""

    def __init__(
        self, tape: Tape, folder: RunFolder, workbench: Effects | None, stop: StopRequest | None = None
    ) -> None:
        self._tape = tape
        self._workbench = workbench
        self._stop = stop or StopRequest()
        self.folder = folder
        self.active_s = 0.0

    def clock(self) -> float:
        """Seconds that the run has been active, over all its resumes."""
        answer = self._perform("clock", {}, lambda bench: bench.clock(self.active_s))
        self.active_s = float(answer["active_s"])
        return self.active_s

    def survey(self) -> dict[str, Any]:
        """Raw outputs of the survey's read-only commands, by name."""
        answer = self._perform("survey", {}, lambda bench: {"outputs": self._keep(bench.survey())})
        outputs: dict[str, Any] = self._kept(answer["outputs"])
        return outputs

    def known(self, scope: Scope, workload: str, goal: str) -> list[Finding]:
        """What earlier runs settled in this scope and near it."""
        request = {"scope": scope.model_dump(mode="json"), "workload": workload, "goal": goal}
        answer = self._perform(
            "findings",
            request,
            lambda bench: {
                "known": [
                    f.model_dump(mode="json") for f in bench.known(scope, workload, goal, self.folder.id)
                ]
            },
        )
        return [Finding.model_validate(f) for f in answer["known"]]

    def earlier(self, alike: Alike) -> tuple[tuple[Launch, ...], ...]:
        """Launches of the baseline in earlier runs that are alike, run by run."""
        answer = self._perform(
            "earlier",
            {"alike": alike.model_dump(mode="json")},
            lambda bench: {"launches": self._keep(dumped(bench.earlier(alike, self.folder.id)))},
        )
        return launches_in(self._kept(answer["launches"]))

    def start(self, launch: str, config: ServerConfig) -> StartReport:
        """Start a server and wait until it is ready, dead or hung; an orphan of this launch is adopted."""
        request = {"launch": launch, "config": config.model_dump(mode="json")}
        answer = self._perform("start", request, lambda bench: bench.start(launch, config, self._put_log))
        return StartReport.model_validate(answer)

    def calibrate(self, launch: str, config: ServerConfig, input_len: int) -> Calibration:
        """How many words make a prompt of `input_len` tokens; asked once per run, on its first server."""
        answer = self._perform(
            "calibrate",
            {"launch": launch, "input_len": input_len},
            lambda bench: bench.calibrate(launch, config, input_len),
        )
        return Calibration.model_validate(answer)

    def first_prompt(self, launch: str, config: ServerConfig, words: int) -> str:
        """Why the server did not answer one prompt of the workload's length; empty when it did."""
        answer = self._perform(
            "first_prompt",
            {"launch": launch, "words": words},
            lambda bench: bench.first_prompt(launch, config, words),
        )
        return str(answer["problem"])

    def load(self, launch: str, config: ServerConfig, spec: Json) -> RungReport:
        """Load the server at one concurrency."""
        request = {"launch": launch, "spec": spec}
        answer = self._perform(
            "load", request, lambda bench: bench.load(launch, config, spec, self.folder.put_raw)
        )
        return RungReport.model_validate(answer)

    def sample_outputs(self, launch: str, config: ServerConfig, asked: Json) -> OutputSample:
        """Greedy answers for the output check."""
        answer = self._perform(
            "outputs",
            {"launch": launch, **asked},
            lambda bench: {"sample": self._keep(bench.sample_outputs(launch, config, asked))},
        )
        return OutputSample.model_validate(self._kept(answer["sample"])["sample"])

    def check_task(
        self, launch: str, config: ServerConfig, command: Sequence[str], timeout_s: float
    ) -> TaskResult:
        """The user's own check of the server."""
        answer = self._perform(
            "task",
            {"launch": launch, "command": list(command), "timeout_s": timeout_s},
            lambda bench: bench.check_task(launch, config, command, timeout_s),
        )
        return TaskResult.model_validate(answer)

    def stop(self, launch: str) -> StopReport:
        """Stop a server and make sure that it is gone."""
        answer = self._perform("stop", {"launch": launch}, lambda bench: bench.stop(launch, self._put_log))
        return StopReport.model_validate(answer)

    def complete(self, request: Json) -> Json:
        """Ask the language model."""
        return self._perform("complete", request, lambda bench: bench.complete(request))

    def approve(self, question: Question) -> Said:
        """What a person says to a launch; awaiting when nobody can answer now."""
        request = question.model_dump(mode="json")
        return Said.model_validate(self._perform("approve", request, lambda bench: bench.approve(question)))

    def text(self, name: str | None) -> str:
        """A long text that the tape refers to."""
        return self.folder.text(name) if name else ""

    def emergency_stop(self) -> Sequence[str]:
        """Stop whatever this run has running, outside the tape: the run is being interrupted."""
        return self._workbench.stop_everything() if self._workbench else ()

    def _perform(self, kind: str, request: Json, effect: Callable[[Effects], Json]) -> Json:
        if self._tape.live:
            self._stop.check()
        return self._tape.perform(kind, request, lambda: effect(self._bench()))

    def _bench(self) -> Effects:
        if self._workbench is None:
            raise AssertionError("a replay reached for the outside world")
        return self._workbench

    def _keep(self, value: Any) -> str:
        return self.folder.put_text(canonical_json(value))

    def _kept(self, name: str) -> Any:
        import json

        return json.loads(self.folder.text(name))

    def _put_log(self, text: str) -> str:
        return self.folder.put_text(text)
