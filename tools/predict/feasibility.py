"""What an engine would refuse or no GPU could run, by arithmetic alone."""

from moeagent.tools.predict.records import Machine, ModelShape
from moeagent.tools.predict.settings import EngineSettings


def impossible(settings: EngineSettings, machine: Machine, model: ModelShape) -> tuple[str, ...]:
    """Reasons why this configuration cannot start; empty when there are none."""
    found = []
    if settings.gpus > machine.gpu_count:
        found.append(f"the configuration needs {settings.gpus} GPUs, the machine has {machine.gpu_count}")
    heads = max((g.heads for g in model.attention if g.kind != "linear"), default=0)
    if heads % settings.attention_tp:
        found.append(f"{heads} attention heads are not divisible by {settings.attention_tp} attention ranks")
    if settings.dp_attention and settings.tp % settings.dp:
        found.append(f"tp {settings.tp} is not divisible by dp {settings.dp}, which DP attention needs")
    moe, ep = model.moe, settings.expert_ep
    if moe is not None and moe.experts % ep:
        found.append(f"{moe.experts} experts are not divisible by ep {ep}")
    if moe is not None and settings.engine == "sglang" and settings.expert_ranks % ep:
        found.append(f"tp {settings.tp} is not divisible by ep {ep}")
    if moe is not None and not settings.expert_ranks % ep:
        found += _uneven_experts(moe.inter, settings.expert_ranks // ep, model.weight_block)
    if settings.pp > model.layers:
        found.append(f"{model.layers} layers do not fill {settings.pp} pipeline stages")
    return tuple(found)


def _uneven_experts(inter: int, slices: int, block: int) -> list[str]:
    """An expert's rows are cut into equal slices, of whole quantisation blocks where there are any."""
    if inter % slices:
        return [f"an expert's {inter} rows are not divisible by {slices} ranks"]
    if block and inter // slices % block:
        rows = inter // slices
        return [
            f"a rank would hold {rows} rows of an expert, no multiple of its FP8 blocks of {block}: raise ep"
        ]
    return []
