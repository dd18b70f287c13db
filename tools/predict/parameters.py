"""Parameter counts of a model, and their bytes on one GPU."""

from moeagent.memory.records import Record
from moeagent.tools.predict import tables
from moeagent.tools.predict.records import ModelShape, WeightFormats

_BF16 = 2
_GIB = 2**30


class ParameterCounts(Record):
    """Parameters by part, whole model, without the MTP layers and the vision tower."""

    experts: int
    one_expert: int
    """Of one routed expert in one layer."""
    shared: int
    router: int
    attention_sharded: int
    attention_replicated: int
    attention_absorbed: int
    dense: int
    embedding: int
    head: int

    @property
    def total(self) -> int:
        """All parameters, MLA's absorbed copies not counted twice."""
        attention = self.attention_sharded + self.attention_replicated
        return self.experts + self.shared + self.router + attention + self.dense + self.embedding + self.head


def count(model: ModelShape) -> ParameterCounts:
    """Parameters by part."""
    moe, hidden = model.moe, model.hidden
    one = moe.matrices * hidden * moe.inter if moe else 0
    shared = moe.matrices * hidden * moe.shared_inter if moe else 0
    embedding = model.vocab * hidden
    return ParameterCounts(
        experts=moe.layers * moe.experts * one if moe else 0,
        one_expert=one,
        shared=moe.layers * shared if moe else 0,
        router=moe.layers * hidden * moe.experts if moe else 0,
        attention_sharded=sum(g.layers * g.sharded_params for g in model.attention),
        attention_replicated=sum(g.layers * g.replicated_params for g in model.attention),
        attention_absorbed=sum(g.layers * g.absorbed_params for g in model.attention),
        dense=model.dense_layers * model.dense_matrices * hidden * model.dense_inter,
        embedding=embedding,
        head=0 if model.tied_embeddings else embedding,
    )


def active(model: ModelShape) -> int:
    """Parameters that one token uses, embeddings counted."""
    parts, moe = count(model), model.moe
    idle = moe.layers * (moe.experts - moe.top_k) * parts.one_expert if moe else 0
    return parts.total - idle


def bytes_per_param(format_name: str) -> float:
    """Bytes of one parameter in a weight format. Raises KeyError for a format that is not in the table."""
    return tables.weight_formats()[format_name].bytes_per_param


def disk_gib(model: ModelShape, formats: WeightFormats) -> float:
    """Size of a checkpoint in these formats; embeddings, head, router and vision tower in bf16."""
    parts = count(model)
    size = parts.experts * bytes_per_param(formats.experts) + parts.shared * bytes_per_param(formats.shared)
    size += (parts.attention_sharded + parts.attention_replicated) * bytes_per_param(formats.attention)
    size += parts.dense * bytes_per_param(formats.dense)
    size += _BF16 * (parts.embedding + parts.head + parts.router + model.vision_params)
    return size / _GIB


def formats_by_size(model: ModelShape, size_gib: float) -> ModelShape:
    """Which parts share the experts' format, where only the size on disk can tell."""
    base = model.formats.experts
    if base == "bfloat16" or model.moe is None:
        return model
    options = [
        WeightFormats(experts=base, shared=shared, attention=attention, dense=shared)
        for shared in (base, "bfloat16")
        for attention in (base, "bfloat16")
    ]
    best = min(options, key=lambda formats: abs(disk_gib(model, formats) - size_gib))
    return model.model_copy(update={"formats": best})
