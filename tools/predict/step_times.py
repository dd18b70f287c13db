"""Where the time of a step comes from: lines fitted to kernels, or an optional table of measured kernels."""

from typing import Protocol

from moeagent.memory.records import Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.batch import Batch, Setting
from moeagent.tools.predict.forward import forward_us
from moeagent.tools.predict.speculation import accepted_tokens, draft_us

_US_PER_MS = 1e3


class StepTimes(Protocol):
    """Times of one configuration under one workload."""

    @property
    def source(self) -> str:
        """Where the numbers come from, for the reader."""

    def decode_ms(self, running: float) -> dict[str, float]:
        """Milliseconds per output token of one sequence, by term, when so many decode at once."""

    def prefill_ms(self, prompts: float) -> float:
        """Milliseconds to prefill so many prompts together."""


class LineTimes:
    """Times by the lines of tables/kernels.toml; what stands in every prediction."""

    source = "lines fitted to measured kernels"

    def __init__(self, at: Setting, workload: Workload) -> None:
        self._at = at
        self._workload = workload

    def decode_ms(self, running: float) -> dict[str, float]:
        """See StepTimes."""
        settings, workload = self._at.settings, self._workload
        context = workload.input_len + workload.output_len / 2
        sequences = max(running / settings.attention_dp / settings.pp, 1)
        batch = Batch(sequences=sequences, tokens_each=settings.draft_tokens, context=context)
        terms = forward_us(self._at, batch)
        if settings.spec_algorithm is not None:
            terms["draft"] = draft_us(self._at, batch)
        tokens = accepted_tokens(settings)
        if settings.pp > 1 and running > 1:
            tokens *= tables.constant("pipeline_efficiency")
        return {name: us / tokens / _US_PER_MS for name, us in terms.items() if us}

    def prefill_ms(self, prompts: float) -> float:
        """See StepTimes. Long prompts run in chunks of the engine's size."""
        length, chunk = self._workload.input_len, self._at.chunk
        if length <= chunk:
            whole, rest = divmod(prompts * length, chunk)
            full = self._chunk_us(chunk, length / 2) if whole else 0.0
            return (whole * full + self._chunk_us(rest, length / 2)) / _US_PER_MS
        steps = range(-(-length // chunk))
        one = sum(self._chunk_us(min(chunk, length - i * chunk), (i + 0.5) * chunk) for i in steps)
        return max(prompts, 1.0) * one / _US_PER_MS

    def _chunk_us(self, tokens: float, context: float) -> float:
        """One chunk whose tokens attend to this much context on average; nothing for no tokens."""
        if not tokens:
            return 0.0
        mine = tokens / self._at.settings.attention_dp
        sequences = max(mine / self._workload.input_len, 1.0)
        batch = Batch(sequences=sequences, tokens_each=mine / sequences, context=context, prefill=True)
        return sum(forward_us(self._at, batch).values())
