"""Weight memory of one GPU under TP, EP, DP-attention, PP and quantisation."""

from moeagent.tools.predict import tables
from moeagent.tools.predict.kv import GIB
from moeagent.tools.predict.parameters import bytes_per_param, count
from moeagent.tools.predict.records import MemoryLine, ModelShape, WeightFormats
from moeagent.tools.predict.settings import EngineSettings

_BF16 = 2
_NO_DRAFT = ("NGRAM", "SUFFIX")
_OWN_DRAFT = ("NEXTN", "EAGLE", "MTP", "DEEPSEEK_MTP", "GLM4_MOE_MTP", "QWEN3_NEXT_MTP")


def formats_in_force(model: ModelShape, settings: EngineSettings) -> WeightFormats:
    """The checkpoint's formats, or those of an on-the-fly quantisation flag on a bf16 checkpoint."""
    wanted = settings.quantisation
    if wanted in tables.weight_formats() and model.formats == WeightFormats():
        return WeightFormats(experts=wanted, shared=wanted, attention=wanted, dense=wanted)
    return model.formats


def uses_own_mtp(model: ModelShape, settings: EngineSettings) -> bool:
    """True when speculation runs on the checkpoint's own MTP layers."""
    return bool(model.mtp_layers) and (settings.spec_algorithm or "").upper() in _OWN_DRAFT


def has_draft_model(settings: EngineSettings) -> bool:
    """True when speculation runs on weights of its own: the checkpoint's MTP layers or another model."""
    return settings.spec_algorithm is not None and settings.spec_algorithm.upper() not in _NO_DRAFT


def weight_lines(model: ModelShape, settings: EngineSettings) -> tuple[MemoryLine, ...]:
    """GiB per GPU by part, on the fullest pipeline stage."""
    parts, formats = count(model), formats_in_force(model, settings)
    ranks, attention_ranks, pp = settings.expert_ranks, settings.attention_tp, settings.pp
    attention = parts.attention_sharded / attention_ranks + parts.attention_replicated
    attention_bytes = attention * bytes_per_param(formats.attention)
    attention_bytes += parts.attention_absorbed * _BF16 / attention_ranks
    shared = parts.shared * bytes_per_param(formats.shared)
    dense = parts.dense * bytes_per_param(formats.dense) / settings.tp
    sizes = (
        ("routed experts", parts.experts * bytes_per_param(formats.experts) / ranks / pp, formats.experts),
        ("shared experts", shared / (1 if settings.has_a2a else ranks) / pp, _shared_note(settings)),
        ("attention", attention_bytes / pp, formats.attention),
        ("dense layers, router", (dense + parts.router * _BF16) / pp, formats.dense),
        ("embedding, head", _embedding(model, settings), "bfloat16"),
        ("vision tower", model.vision_params * _BF16, "bfloat16, on every GPU"),
        ("draft layers", _draft_bytes(model, settings), settings.spec_algorithm or ""),
    )
    return tuple(MemoryLine(name=name, gib=size / GIB, note=note) for name, size, note in sizes if size)


def _shared_note(settings: EngineSettings) -> str:
    return "on every GPU: an all-to-all backend replicates them" if settings.has_a2a else ""


def _embedding(model: ModelShape, settings: EngineSettings) -> float:
    """Under DP attention every rank holds the whole embedding; the head stays split."""
    parts = count(model)
    embedding, head = parts.embedding / settings.attention_tp, parts.head / settings.tp
    return (embedding + head if settings.pp == 1 else max(embedding, head)) * _BF16


def _draft_bytes(model: ModelShape, settings: EngineSettings) -> float:
    if not has_draft_model(settings):
        return 0.0
    if not uses_own_mtp(model, settings):
        return tables.constant("draft_model_gib") * GIB
    parts, moe = count(model), model.moe
    layer = sum(g.sharded_params + g.replicated_params for g in model.attention[:1])
    if moe is not None:
        layer += moe.experts * parts.one_expert + parts.shared // moe.layers
    else:
        layer += parts.dense // model.layers
    return model.mtp_layers * layer * _BF16 / settings.tp
