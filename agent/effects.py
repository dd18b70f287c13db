"""What performs the world's effects: the workbench on a real host, or a world in virtual time."""

from collections.abc import Callable, Sequence
from typing import Protocol

from moeagent.memory.findings.alike import Alike
from moeagent.memory.findings.store import Finding
from moeagent.memory.records import Launch, Scope, ServerConfig
from moeagent.memory.records.approval import Question
from moeagent.memory.tape.lines import Json

KeepText = Callable[[str], str]
KeepRaw = Callable[[bytes], str]


class Effects(Protocol):
    """One method for each kind of event on the tape; the answers are what the tape holds."""

    def clock(self, active_before_s: float) -> Json:
        """Seconds of activity over all resumes."""

    def survey(self) -> Json:
        """Outputs of the survey's commands."""

    def known(self, scope: Scope, workload: str, goal: str, besides: str) -> list[Finding]:
        """What earlier runs settled."""

    def earlier(self, alike: Alike, besides: str) -> Sequence[Sequence[Launch]]:
        """Launches of the baseline in earlier runs that are alike, run by run."""

    def start(self, launch: str, config: ServerConfig, keep: KeepText) -> Json:
        """Start or adopt the server of a launch and wait for it."""

    def calibrate(self, launch: str, config: ServerConfig, input_len: int) -> Json:
        """How many words make a prompt of the workload's length."""

    def first_prompt(self, launch: str, config: ServerConfig, words: int) -> Json:
        """Whether the server answers one prompt of the workload's length."""

    def load(self, launch: str, config: ServerConfig, spec: Json, keep: KeepRaw) -> Json:
        """Load the server at one concurrency."""

    def sample_outputs(self, launch: str, config: ServerConfig, asked: Json) -> Json:
        """Greedy answers for the output check."""

    def check_task(self, launch: str, config: ServerConfig, command: Sequence[str], timeout_s: float) -> Json:
        """The user's own check of the server."""

    def stop(self, launch: str, keep: KeepText) -> Json:
        """Stop a server, bring its log."""

    def complete(self, request: Json) -> Json:
        """One completion of the language model."""

    def approve(self, question: Question) -> Json:
        """The engineer's answer, and who gave it."""

    def stop_everything(self) -> list[str]:
        """Stop every server that this run has running; returns what could not be stopped."""
