"""What an engine holds on a GPU beside weights and KV pool. All results are GiB per GPU."""

from moeagent.tools.predict import tables
from moeagent.tools.predict.engine_rules import Defaults
from moeagent.tools.predict.kv import GIB
from moeagent.tools.predict.records import ModelShape
from moeagent.tools.predict.settings import EngineSettings

_BF16 = 2
_MIB = 2**20
_REQUEST_SLOT_BYTES = 4
_DEEPEP_MIN = 128
_DEEPEP_MAX = 1024


def request_pool_gib(max_running: int, chosen: Defaults) -> float:
    """SGLang's req_to_token table: one int32 per request and context position."""
    return max_running * chosen.context_len * _REQUEST_SLOT_BYTES / GIB


def graphs_gib(chosen: Defaults, *, draft: bool = False) -> float:
    """Captured CUDA graphs, with those of a draft model where there is one."""
    if not chosen.graph_bs:
        return 0.0
    extra = tables.constant("graphs_mib_per_request") * chosen.graph_bs * _MIB / GIB
    own = tables.constant("graphs_base_gib") + extra
    return own * (1 + tables.constant("draft_graphs_share") * draft)


def activation_gib(model: ModelShape, settings: EngineSettings, tokens: int) -> float:
    """Activations and MoE workspace of one forward over this many tokens.

    A rank that holds whole experts needs rows of the full expert width, a tensor-parallel rank its slice.
    """
    states = tables.constant("activation_copies") * model.hidden * _BF16
    moe = model.moe
    workspace = 0.0
    if moe is not None:
        inter = moe.inter * settings.expert_ep / settings.expert_ranks
        workspace = moe.top_k * (0.56 * model.hidden + 4 * inter + inter + 2 * model.hidden)
    return tokens * (states + workspace) / GIB


def logits_gib(model: ModelShape, rows: int) -> float:
    """fp32 logits of so many sampled positions, as the sampler's warm-up holds them."""
    return tables.constant("logits_copies") * rows * model.vocab * 4 / GIB


def a2a_gib(model: ModelShape, settings: EngineSettings, chosen: Defaults) -> float:
    """All-to-all buffers of one rank for the named backend; 0 for a backend without a formula."""
    backend = settings.a2a.lower()
    if model.moe is None:
        return 0.0
    if backend.startswith("deepep"):
        tokens = min(max(chosen.graph_bs // settings.expert_ep, _DEEPEP_MIN), _DEEPEP_MAX)
        return deepep_gib(model.hidden, model.moe.experts, tokens)
    if backend.startswith("flashinfer"):
        tokens = round(settings.expert_ep * tables.constant("a2a_dispatch_tokens"))
        fp4 = model.formats.experts == "nvfp4"
        return flashinfer_gib(model.hidden, model.moe.top_k, settings.expert_ep, tokens, fp4=fp4)
    return 0.0


def deepep_gib(hidden: int, experts: int, tokens: int) -> float:
    """DeepEP's low-latency buffers for so many tokens per rank (it asserts at most 1024)."""
    dispatch, combine = 16 + 2 * hidden, 4 * (hidden / 128) + 2 * hidden
    peak = max(tokens * dispatch, experts * tokens * combine)
    return 2 * (peak + experts * tokens * max(dispatch, combine)) / GIB


def flashinfer_gib(hidden: int, top_k: int, ranks: int, tokens: int, *, fp4: bool) -> float:
    """FlashInfer's dispatch and combine buffers; tokens is the most that a rank may get from another."""
    dispatch = (hidden / 2 + hidden / 16 if fp4 else 2 * hidden) + 8 * top_k
    return ranks * tokens * (dispatch + 2 * hidden) / GIB
