"""The campaign's output samples: fast and wrong is a regression."""

from dataclasses import dataclass, field

from moeagent.memory.records import ServerConfig
from moeagent.tools.output_check.compare import compare
from moeagent.tools.output_check.sample import OutputSample, OutputVerdict


@dataclass
class Outputs:
    """Greedy answers by configuration; the baseline's several samples set the tolerance."""

    baseline: str = ""
    samples: dict[str, list[OutputSample]] = field(default_factory=dict)

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
        return compare(reference, found[-1])
