"""What one forward pass works on."""

from moeagent.memory.records import Record
from moeagent.tools.predict.records import ModelShape
from moeagent.tools.predict.settings import EngineSettings
from moeagent.tools.predict.tables.schema import Fabric, GpuSpec

_SM120 = "12"


class Setting(Record):
    """What every forward of one configuration shares."""

    spec: GpuSpec
    fabric: Fabric
    model: ModelShape
    settings: EngineSettings
    graph_bs: int
    chunk: int
    """Tokens of one prefill forward at most."""

    @property
    def bandwidth_mb_us(self) -> float:
        """Memory bandwidth in MB per microsecond (which is TB/s)."""
        return self.spec.bandwidth_tb_s

    @property
    def sparse(self) -> bool:
        """True where sparse attention has kernels; SGLang falls back to dense MLA on SM120."""
        return not (self.spec.sm.startswith(_SM120) and self.settings.engine == "sglang")


class Batch(Record):
    """One forward: sequences of one attention rank, new tokens of each, mean context they attend to."""

    sequences: float
    tokens_each: float
    context: float
    prefill: bool = False

    @property
    def tokens(self) -> float:
        """New tokens on one attention rank."""
        return self.sequences * self.tokens_each
