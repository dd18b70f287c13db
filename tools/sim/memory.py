"""Memory of one GPU: weights, the pool rule, what lies outside the pool, and what grows under load."""

from dataclasses import dataclass

from moeagent.tools.sim.settings import Settings
from moeagent.tools.sim.shapes import GIB
from moeagent.tools.sim.world import World

MAX_SLOTS = 4096
MIN_SLOTS = 2048
GRAPH_BASE_GIB = 0.4
GRAPH_GIB_PER_BATCH = 4.0 / 1024.0
GROWTH_BATCH = 256.0
"""Running requests at which the allocator's growth is at its full size."""
MOE_WORKSPACE_BYTES = 3.6
"""Bytes of expert workspace per routed token and hidden value: 1.3 GiB for a chunk of 8,192 on GLM-5."""


@dataclass(frozen=True)
class MemoryPlan:
    """GiB of one GPU, in the order in which the engine allocates."""

    free: float
    """Free after the distributed set-up: the engine's M0."""
    weights: float
    draft: float
    aux: float
    pool: float
    kv_tokens: int
    max_running: int
    request_pool: float
    graphs: float
    workspace: float
    growth: float
    """Allocator growth at full batch."""
    per_request: float
    """All-to-all buffers for each running request."""
    fraction: float
    held: float = 0.0
    """Held by other processes before the start."""

    @property
    def after_load(self) -> float:
        """Free once the weights are loaded."""
        return self.free - self.weights

    @property
    def after_pool(self) -> float:
        """Free once the pools are allocated."""
        return self.after_load - self.draft - self.aux - self.pool - self.request_pool

    @property
    def after_capture(self) -> float:
        """Free at the ready line."""
        return self.after_pool - self.graphs

    def spare(self, running: int) -> float:
        """Free at this running batch; below zero the next allocation fails."""
        grown = self.growth * min(running / GROWTH_BATCH, 1.0)
        return self.after_capture - self.workspace - grown - self.per_request * running

    def breaks_at(self) -> int | None:
        """The smallest running batch that does not fit; None when the limit on running requests fits."""
        if self.spare(self.max_running) >= 0:
            return None
        low, high = 0, self.max_running
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.spare(middle) >= 0 else (low, middle)
        return high


def weights_gib(world: World, settings: Settings) -> float:
    """Weights of one rank as the engine's load line shows them."""
    model, tp, pp = world.model, settings.tp, int(settings.args["pp_size"])
    attention_tp = max(tp // settings.attention_groups, 1)
    attention = model.replicated_bytes + model.sharded_bytes / attention_tp
    experts = model.moe_layers * model.experts * model.expert_weight_bytes / tp
    layers = attention + experts + (model.shared_bytes + model.dense_layer_bytes) / tp + model.router_bytes
    extra = model.ep_extra_gib if settings.all_to_all else model.tp_extra_gib * 8.0 / tp
    return (layers / pp + model.vocab_bytes / tp) / GIB + extra / pp + model.vision_gib


def kv_bytes_per_token(world: World, settings: Settings) -> float:
    """Cache bytes of one token on one rank, the draft model's layer included."""
    attention_tp = max(settings.tp // settings.attention_groups, 1)
    cell = world.model.kv_bytes(attention_tp, settings.kv_width) / int(settings.args["pp_size"])
    return cell * (1.0 + 1.0 / world.model.layers) if settings.speculative else cell


def _graphs_gib(settings: Settings) -> float:
    if settings.graph_bs == 0:
        return 0.0
    tokens = settings.graph_bs * (1.0 + 0.6 * (settings.draft_tokens - 1))
    padding = 3.0 if settings.args["disable_cuda_graph_padding"] else 1.0
    compiled = 1.3 if settings.args["enable_torch_compile"] else 1.0
    return GRAPH_BASE_GIB + GRAPH_GIB_PER_BATCH * tokens * padding * compiled


def _workspace_gib(world: World, settings: Settings) -> float:
    model = world.model
    chunk = int(settings.args["chunked_prefill_size"])
    tokens = (chunk if chunk > 0 else int(settings.args["max_prefill_tokens"])) * settings.attention_groups
    width = model.top_k * 0.7 if model.experts else 4.0
    return tokens * model.hidden * width * MOE_WORKSPACE_BYTES / GIB + 0.45


def _slots(world: World, settings: Settings, tokens: int) -> int:
    context = int(settings.args["context_length"] or world.model.context)
    slots = min(max(tokens // context * 512, MIN_SLOTS), MAX_SLOTS)
    wanted = settings.args["max_running_requests"]
    groups = settings.groups
    return max(min(wanted // groups if wanted else tokens // 2, slots), 1)


def plan_memory(world: World, settings: Settings, held: float = 0.0) -> MemoryPlan:
    """The allocation of one GPU; `held` GiB belong to other processes."""
    model, hidden = world.model, world.hidden
    free = world.machine.free_gib - held
    weights = weights_gib(world, settings)
    draft = model.draft_gib / settings.tp if settings.speculative else 0.0
    aux = model.ep_aux_gib if settings.all_to_all else 0.0
    fraction = float(settings.args["mem_fraction_static"])
    rest = free - weights - draft - aux - free * (1.0 - fraction)
    page = int(settings.args["page_size"])
    cell = kv_bytes_per_token(world, settings)
    tokens = int(rest * GIB // cell) // page * page if rest > 0 else 0
    tokens = min(tokens, int(settings.args["max_total_tokens"] or tokens))
    running = _slots(world, settings, tokens)
    context = int(settings.args["context_length"] or model.context)
    expandable = "expandable_segments:True" in settings.env.get("PYTORCH_CUDA_ALLOC_CONF", "")
    scale = free / 94.0 if world.machine.count > 1 else free / 140.0
    dispatch = int(settings.env.get("SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK", "1024") or 1024)
    per_request = (
        hidden.a2a_mib_per_request / 1024.0 * max(dispatch / 1024.0, 1.0) if settings.all_to_all else 0.0
    )
    symmetric = 4.0 if settings.args["enable_symm_mem"] else 0.0
    return MemoryPlan(
        free=free, weights=weights, draft=draft, aux=aux + symmetric, pool=tokens * cell / GIB,
        kv_tokens=tokens,
        max_running=running, request_pool=running * context * 4.0 / GIB, graphs=_graphs_gib(settings),
        workspace=_workspace_gib(world, settings),
        growth=hidden.fragment_gib * scale * (0.35 if expandable else 1.0),
        per_request=per_request, fraction=fraction, held=held,
    )  # fmt: skip
