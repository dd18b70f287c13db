"""What the client is told, what it may spend, and what a completion comes to."""

from typing import Any, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from moeagent.memory.records import Record

ResponseFormat = Literal["json_schema", "json_object", "plain"]
Role = Literal["system", "user", "assistant"]
FailureKind = Literal["", "connection", "timeout", "http", "malformed"]


class Endpoint(Record):
    """One model at one OpenAI-compatible endpoint. The key is not part of it: it is never recorded."""

    base_url: str
    """Such as http://127.0.0.1:8000/v1."""
    model: str
    deadline_s: PositiveFloat = 60.0
    """For one completion with all its retries."""
    max_tokens: PositiveInt = 4096
    price_per_million_input: NonNegativeFloat = 0.0
    price_per_million_output: NonNegativeFloat = 0.0


class CallLimits(Record):
    """Hard limits of one run, checked before each call; None does not bind."""

    calls: NonNegativeInt | None = 100
    tokens: NonNegativeInt | None = 1_000_000
    money: NonNegativeFloat | None = None
    wall_s: NonNegativeFloat | None = None


class Spent(Record):
    """What the calls so far took."""

    calls: int = 0
    """Requests over the wire, retries included."""
    tokens: int = 0
    money: float = 0.0
    wall_s: float = 0.0

    def plus(self, completion: "Completion", endpoint: Endpoint) -> Self:
        """The total after one more completion."""
        cost = (
            completion.input_tokens * endpoint.price_per_million_input
            + completion.output_tokens * endpoint.price_per_million_output
        ) / 1_000_000
        return self.model_copy(
            update={
                "calls": self.calls + completion.attempts,
                "tokens": self.tokens + completion.input_tokens + completion.output_tokens,
                "money": round(self.money + cost, 6),
                "wall_s": round(self.wall_s + completion.elapsed_s, 3),
            }
        )

    def reached(self, limits: CallLimits) -> str | None:
        """Which limit leaves no room for another call, in words."""
        pairs = (
            ("calls", self.calls, limits.calls),
            ("tokens", self.tokens, limits.tokens),
            ("money", self.money, limits.money),
            ("seconds of waiting", self.wall_s, limits.wall_s),
        )
        for name, spent, limit in pairs:
            if limit is not None and spent >= limit:
                return f"the limit of {limit:g} {name} for the language model is reached"
        return None


class Message(Record):
    """One turn of a conversation."""

    role: Role
    content: str


class Completion(Record):
    """One completion as it is recorded: the answer, or how it failed."""

    failure: FailureKind = ""
    """Empty when the endpoint answered."""
    message: str = ""
    """What went wrong, without secrets."""
    http_status: int | None = None
    content: str = ""
    reasoning: str = ""
    """What the endpoint put into reasoning_content."""
    finish_reason: str = ""
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    attempts: int = Field(default=1, ge=1)
    elapsed_s: float = Field(default=0.0, ge=0)

    @property
    def unsupported(self) -> bool:
        """The endpoint understood the request and refuses a part of it."""
        return self.failure == "http" and self.http_status in (400, 404, 415, 422, 501)


class CompletionRequest(Record):
    """What goes over the wire, apart from the key."""

    base_url: str
    deadline_s: float
    attempts: PositiveInt
    """Requests over the wire at most."""
    body: dict[str, Any]
    """Of POST /chat/completions."""
