"""Defaults that an engine derives from the card, and its automatic memory fraction."""

from moeagent.memory.records import Record
from moeagent.tools.predict import tables
from moeagent.tools.predict.records import ModelShape
from moeagent.tools.predict.settings import EngineSettings
from moeagent.tools.predict.tables.schema import MemoryRule, MemoryTier

_GIB_MIB = 1024
_BIG_GRAPH = 300


class Defaults(Record):
    """The settings in force once the engine has filled in its own defaults."""

    chunk: int
    graph_bs: int
    max_running: int | None
    fraction: float
    fraction_given: bool
    page_size: int
    context_len: int


def memory_rule(engine: str) -> MemoryRule:
    """The rule by which an engine divides the card. Raises LookupError for an engine without a table."""
    found = tables.engine_map(engine)
    if found is None:
        raise LookupError(f"no memory rule for engine {engine}")
    return found.memory


def defaults(settings: EngineSettings, model: ModelShape, memory_mib: int) -> Defaults:
    """What the engine would run with on cards of this size."""
    rule = memory_rule(settings.engine)
    tier = _tier(rule, memory_mib)
    chunk = settings.chunk if settings.chunk is not None else tier.chunk
    graph_bs = 0 if settings.graphs_off else settings.graph_bs or _graph_bs(tier, settings)
    max_running = settings.max_running or tier.max_running
    if rule.rule == "vllm" and max_running and settings.graph_bs is None:
        graph_bs = min(graph_bs, 2 * max_running * settings.draft_tokens)
    fraction = settings.mem_fraction or rule.default_fraction
    if fraction is None:
        fraction = automatic_fraction(rule, settings, model, memory_mib, chunk=chunk, graph_bs=graph_bs)
    return Defaults(
        chunk=chunk if chunk > 0 else 16384,
        graph_bs=graph_bs,
        max_running=max_running,
        fraction=fraction,
        fraction_given=settings.mem_fraction is not None,
        page_size=settings.page_size or rule.page_size,
        context_len=_context(settings, model),
    )


def automatic_fraction(
    rule: MemoryRule,
    settings: EngineSettings,
    model: ModelShape,
    memory_mib: int,
    *,
    chunk: int,
    graph_bs: int,
) -> float:
    """SGLang's automatic mem_fraction_static; chunk and graph size silently change it."""
    reserved = rule.reserve_base_mib + rule.reserve_per_chunk_mib * max(chunk, 2048)
    reserved += (
        rule.reserve_per_graph_bs_mib * graph_bs + rule.reserve_per_gpu_mib * settings.tp * settings.pp
    )
    if settings.dp_attention:
        factor = 1.5 if graph_bs > _BIG_GRAPH else 1.0
        reserved += rule.reserve_dp_per_graph_bs_mib * graph_bs * settings.dp * factor
    if memory_mib > rule.reserve_floor_above_gib * _GIB_MIB:
        reserved = max(reserved, rule.reserve_floor_mib)
    reserved += rule.reserve_spec_mib.get((settings.spec_algorithm or "").upper(), 0)
    fraction = round((memory_mib - reserved) / memory_mib, 3)
    return fraction * _vision_factor(rule, model)


def _vision_factor(rule: MemoryRule, model: ModelShape) -> float:
    """SGLang's discount for a multimodal model, by the size of its vision tower relative to a ViT-L."""
    if not model.vision_layers:
        return 1.0
    relative = model.vision_layers * model.vision_hidden**2 / (24 * 1024**2)
    return rule.vision_factor * min(max(1 - 0.1 * (relative - 1), 0.8), 1.05)


def _tier(rule: MemoryRule, memory_mib: int) -> MemoryTier:
    return next(t for t in rule.tiers if memory_mib < t.up_to_gib * _GIB_MIB or t is rule.tiers[-1])


def _graph_bs(tier: MemoryTier, settings: EngineSettings) -> int:
    return tier.graph_bs_tp4 if settings.tp >= 4 else tier.graph_bs_tp1


def _context(settings: EngineSettings, model: ModelShape) -> int:
    wanted = settings.context_len
    return wanted if wanted and wanted > 0 else model.max_context
