"""What was said about a configuration before it was launched: by the policy, or by a person."""

from typing import Literal

from moeagent.memory.records.base import Record

Answer = Literal["yes", "no", "skip", "awaiting"]


class Question(Record):
    """What a person sees before saying yes: one configuration that is about to be launched."""

    hypothesis: str
    attempt: int = 0
    """Remedies applied to it so far: 0 for the idea itself."""
    statement: str
    change: str
    """Against the configuration that it starts from, in words."""
    command: str
    """As it would run, secrets masked; the port is chosen at the start."""
    risk: float
    risk_why: str = ""
    predicted: str = ""
    """Effect by concurrency, in words."""
    expected_s: float
    gpu_hours: float
    cost: float | None = None
    why: str
    """Which rule or mode wants it asked."""


class Said(Record):
    """The answer, and who gave it."""

    answer: Answer
    by: str


class Approval(Record):
    """One configuration's way past the approval step."""

    hypothesis: str
    attempt: int = 0
    config: str
    """Id of the ServerConfig."""
    answer: Literal["allowed", "denied", "approved", "declined", "skipped", "awaiting"]
    """allowed and denied are the policy's words, the others a person's; awaiting: nobody has answered yet."""
    by: str
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether it may be launched."""
        return self.answer in ("allowed", "approved")

    @property
    def refused(self) -> bool:
        """Whether it is not launched in this run."""
        return self.answer in ("denied", "declined", "skipped")
