"""The campaign's output samples: fast and wrong is a regression."""

from dataclasses import dataclass, field

from moeagent.memory.records import ServerConfig
from moeagent.tools.output_check.compare import compare
from moeagent.tools.output_check.sample import OutputSample, OutputVerdict
from moeagent.tools.output_check.task import TaskResult

PROMPTS = (
    "The three states of matter are",
    "List the first ten prime numbers:",
    "Translate to French: The server answers every request.",
    "def fibonacci(n):",
    "Once upon a time, on a ship without a captain,",
    "A mixture of experts routes each token to",
    "Q: What is 17 times 23? A:",
    "The capital cities of Norway, Kenya and Peru are",
    "In a binary search, each step halves",
    "Dear customer, thank you for",
    "The chemical formula of water is",
    "SELECT name, price FROM products WHERE",
)
"""Fixed for good: a changed prompt makes old samples incomparable."""


@dataclass
class Outputs:
    """Greedy answers by configuration; the baseline's several samples set the tolerance."""

    baseline: str = ""
    samples: dict[str, list[OutputSample]] = field(default_factory=dict)
    tasks: dict[str, TaskResult] = field(default_factory=dict)
    """What the user's own check said, by configuration."""
    _verdicts: dict[tuple[str, int, int], OutputVerdict] = field(default_factory=dict)
    """Samples are only ever added, so their numbers tell whether a comparison still holds."""

    def add(self, config: ServerConfig, sample: OutputSample) -> None:
        """Keep one launch's answers; the first configuration is the baseline."""
        self.baseline = self.baseline or config.id
        self.samples.setdefault(config.id, []).append(sample)

    def verdict_on(self, config: ServerConfig) -> OutputVerdict | None:
        """The last sample against the baseline's; None where there is nothing to compare."""
        found = self.samples.get(config.id)
        reference = self.samples.get(self.baseline)
        if not found or not reference or config.id == self.baseline:
            return None
        key = (config.id, len(found), len(reference))
        if key not in self._verdicts:
            self._verdicts[key] = compare(reference, found[-1])
        return self._verdicts[key]
