"""Models and machines of the simulated worlds: validated data, and the sizes that follow from a shape."""

import tomllib
from functools import cache
from importlib.resources import files

from moeagent.memory.records import Record

GIB = float(2**30)


class ModelShape(Record):
    """Shape of one model; sizes in GiB, times in microseconds. Sources stand in data/models.toml."""

    folder: str
    architecture: str
    model_type: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    q_lora: int = 0
    kv_lora: int = 0
    qk_nope: int = 0
    qk_rope: int = 0
    v_dim: int = 0
    indexer_heads: int = 0
    indexer_dim: int = 0
    experts: int
    top_k: int
    shared_experts: int
    expert_inter: int
    dense_layers: int
    dense_inter: int
    vocab: int
    context: int
    quant: str
    quant_method: str
    expert_bytes: float
    dense_bytes: float
    kv_auto: str
    page_size: int
    attention: str
    runner: str
    vision_layers: int = 0
    vision_hidden: int = 0
    vision_gib: float = 0.0
    tp_extra_gib: float = 0.0
    ep_extra_gib: float = 0.0
    ep_aux_gib: float = 0.0
    draft_gib: float = 0.0
    draft_algorithms: tuple[str, ...] = ()
    accept: float = 1.0
    draft_us: float = 0.0
    moe_base_us: float | None = None
    tensor_tflops: float | None = None
    shards: int

    @property
    def moe_layers(self) -> int:
        """Layers whose feed-forward part is a mixture of experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def is_mla(self) -> bool:
        """True for multi-head latent attention, whose cache is not divided by tensor parallelism."""
        return self.kv_lora > 0

    @property
    def multimodal_factor(self) -> float:
        """What the engine takes off the automatic memory fraction for a vision tower."""
        if not self.vision_layers:
            return 1.0
        size = self.vision_layers * self.vision_hidden**2 / (24 * 1024**2)
        return 0.95 * min(max(1.0 - 0.1 * (size - 1.0), 0.8), 1.05)

    @property
    def replicated_bytes(self) -> float:
        """Attention weights that every rank holds whole."""
        if not self.is_mla:
            return 0.0
        indexer = self.q_lora * self.indexer_heads * self.indexer_dim
        indexer += self.hidden * (self.indexer_dim + self.indexer_heads) if self.indexer_dim else 0
        down = self.hidden * (self.q_lora + self.kv_lora + self.qk_rope)
        return self.layers * (down + indexer) * self.dense_bytes

    @property
    def router_bytes(self) -> float:
        """Expert routers, held whole by every rank."""
        return self.moe_layers * self.hidden * self.experts * 2.0

    @property
    def sharded_bytes(self) -> float:
        """Attention weights that tensor parallelism divides, over all ranks."""
        if not self.is_mla:
            width = self.head_dim * (2 * self.heads + 2 * self.kv_heads)
            return self.layers * self.hidden * width * self.dense_bytes
        query = self.q_lora * self.heads * (self.qk_nope + self.qk_rope)
        up = 2 * self.kv_lora * self.heads * (self.qk_nope + self.v_dim)  # as loaded, and absorbed
        return self.layers * (query + up + self.heads * self.v_dim * self.hidden) * self.dense_bytes

    @property
    def expert_weight_bytes(self) -> float:
        """One routed expert of one layer, whole."""
        return 3.0 * self.hidden * self.expert_inter * self.expert_bytes

    @property
    def shared_bytes(self) -> float:
        """Shared experts of all layers; quantisers leave them as they are."""
        return (
            self.moe_layers * self.shared_experts * 3.0 * self.hidden * self.expert_inter * self.dense_bytes
        )

    @property
    def dense_layer_bytes(self) -> float:
        """Dense feed-forward layers, over all ranks."""
        return self.dense_layers * 3.0 * self.hidden * self.dense_inter * self.dense_bytes

    @property
    def vocab_bytes(self) -> float:
        """Embedding and output head, over all ranks."""
        return 2.0 * self.vocab * self.hidden * 2.0

    @property
    def checkpoint_bytes(self) -> float:
        """Size of the model on disk."""
        experts = self.moe_layers * self.experts * self.expert_weight_bytes
        layers = self.replicated_bytes + self.sharded_bytes + self.router_bytes
        return experts + layers + self.shared_bytes + self.dense_layer_bytes + self.vocab_bytes

    @property
    def active_flops(self) -> float:
        """Floating-point operations for one token of one forward pass."""
        experts = self.moe_layers * (self.top_k + self.shared_experts) * 3.0 * self.hidden * self.expert_inter
        rest = (self.replicated_bytes + self.sharded_bytes) / self.dense_bytes
        dense = self.dense_layers * 3.0 * self.hidden * self.dense_inter
        return 2.0 * (experts + rest + dense + self.vocab * self.hidden)

    def kv_bytes(self, tp: int, width: float) -> float:
        """Cache bytes of one token on one rank, at `width` bytes a value."""
        if self.is_mla:
            index = self.indexer_dim + 4 if self.indexer_dim else 0
            return self.layers * ((self.kv_lora + self.qk_rope) * width + index)
        return self.layers * 2.0 * max(self.kv_heads / tp, 1.0) * self.head_dim * width


class MachineShape(Record):
    """One machine; rates are those that kernels reach. Sources stand in data/machines.toml."""

    gpu: str
    count: int
    memory_mib: int
    free_gib: float
    capability: str
    bandwidth_gb_s: float
    tensor_tflops: float
    moe_base_us: float
    expert_us: float
    power_w: int
    pcie: bool
    cpu_cores: int
    ram_gib: float
    price_per_hour: float
    ll_alpha_us: float
    ll_gb_s: float
    ll_max_bytes: int
    simple_alpha_us: float
    simple_gb_s: float
    tuned_ll_gb_s: float
    tuned_simple_gb_s: float
    hop_us: float


def _tables(name: str) -> dict[str, dict[str, object]]:
    return tomllib.loads((files("moeagent.tools.sim.data") / name).read_text())


@cache
def load_models() -> dict[str, ModelShape]:
    """All models by name."""
    return {name: ModelShape.model_validate(table) for name, table in _tables("models.toml").items()}


@cache
def load_machines() -> dict[str, MachineShape]:
    """All machines by name."""
    return {name: MachineShape.model_validate(table) for name, table in _tables("machines.toml").items()}
