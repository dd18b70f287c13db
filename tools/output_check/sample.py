"""What was answered."""

from moeagent.memory.records import Record


class Answer(Record):
    """The greedy answer to one prompt."""

    prompt: int
    """Index in the prompt set."""
    text: str
    token_ids: tuple[int, ...] | None = None
    """None where the server does not tell them."""
    logprobs: tuple[float | None, ...] | None = None
    """Of the chosen tokens, natural; None where not offered, an entry None where not a finite number."""
    error: str = ""
    """Why there is no answer; empty when there is one."""


class BatchSample(Record):
    """All prompts answered with so many requests in flight."""

    batch_size: int
    answers: tuple[Answer, ...]


class OutputSample(Record):
    """The answers of one launch at every batch size."""

    batches: tuple[BatchSample, ...]

    def at(self, batch_size: int) -> BatchSample | None:
        """The answers at this batch size."""
        return next((b for b in self.batches if b.batch_size == batch_size), None)


class Evidence(Record):
    """One reason why the output is wrong."""

    batch_size: int
    detector: str
    """missing, agreement, logprobs, token-range, not-a-number, repetition, unreadable or empty."""
    message: str
    example: str = ""
    """Baseline's and candidate's words on the worst prompt, as they came."""


class OutputVerdict(Record):
    """The comparison's result."""

    ok: bool
    evidence: tuple[Evidence, ...] = ()

    @property
    def reason(self) -> str:
        """In one line."""
        return "; ".join(f"batch {e.batch_size}: {e.message}" for e in self.evidence) or "outputs agree"
