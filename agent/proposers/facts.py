"""Facts of the campaign under the names that the playbook's expressions use. None: nobody knows."""

from collections.abc import Mapping, Sequence
from typing import Any

from moeagent.agent.proposers.expression import PURE_FUNCTIONS, Function, UnknownFactError, Value
from moeagent.agent.proposers.spelling import Spelling
from moeagent.agent.proposers.view import CampaignView
from moeagent.memory.records import HostFacts, Launch, ModelFacts, ServerConfig, Workload

# Names in the config.json files of the models in circulation, most specific first.
_MODEL_KEYS: dict[str, tuple[str, ...]] = {
    "experts": ("n_routed_experts", "num_experts", "num_local_experts", "expert_count"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "expert_used_count"),
    "layers": ("num_hidden_layers", "n_layer", "block_count"),
    "hidden": ("hidden_size", "n_embd", "embedding_length"),
    "kv_heads": ("num_key_value_heads", "num_attention_heads", "head_count_kv"),
    "kv_lora": ("kv_lora_rank",),
    "mtp_layers": ("num_nextn_predict_layers",),
    "context": ("max_position_embeddings", "context_length"),
}

_POOL_FLAGS = ("--dp-size", "--attn-dp-size", "--data-parallel-size", "--dp", "-dp")
"""Flags of SGLang and vLLM that give each of several groups a KV pool of its own."""

FACT_NAMES = frozenset(
    {
        "gpus", "sm", "gpu_gib", "nvlink", "cores", "ram_gib",
        "moe", "experts", "top_k", "layers", "hidden", "kv_heads", "mla", "mtp", "context",
        "quant", "kv_quant", "architecture", "model_gib", "fits_one_gpu",
        "goal", "peak", "lowest", "input_len", "output_len", "seq_len", "dataset",
        "kv_tokens", "kv_gib", "kv_seqs",
    }
)  # fmt: skip
FUNCTION_NAMES = frozenset(
    {*PURE_FUNCTIONS, "flag", "has", "env", "declares", "version_from", "version_below"}
)


def facts_of(view: CampaignView) -> dict[str, Value | None]:
    """Every fact by its name; the keys are exactly FACT_NAMES."""
    return {
        **_machine(view.host),
        **_model(view.model, view.host),
        **_load(view.workload),
        **_memory(view),
        "goal": view.goal.name,
    }


def functions_of(view: CampaignView, config: ServerConfig, spelling: Spelling) -> dict[str, Function]:
    """The functions of the language, bound to one configuration."""
    return {
        **PURE_FUNCTIONS,
        "flag": lambda name, default=None: _current(view, config, spelling, name, default),
        "has": lambda name: spelling.find(name, config.flags) is not None,
        "env": lambda name: config.env.get(name, ""),
        "declares": lambda name: spelling.declared(name) is not None,
        "version_from": lambda version: _version(view.engine.version) >= _version(version),
        "version_below": lambda version: _version(view.engine.version) < _version(version),
    }


def _machine(host: HostFacts) -> dict[str, Value | None]:
    gpu = host.gpus[0] if host.gpus else None
    capability = gpu.compute_capability if gpu else None
    return {
        "gpus": len(host.gpus),
        "sm": _capability(capability) if gpu else 0,
        "gpu_gib": gpu.memory_mib / 1024 if gpu else 0.0,
        "nvlink": _nvlink(host),
        "cores": host.cpu_cores,
        "ram_gib": host.ram_gib,
    }


def _capability(text: str | None) -> int | None:
    """12.0 as 120."""
    major, _, minor = (text or "").partition(".")
    return int(major) * 10 + int(minor) if major.isdigit() and minor.isdigit() else None


def _nvlink(host: HostFacts) -> bool | None:
    """Whether the topology matrix shows NVLink between GPUs (NV1 to NV18)."""
    if len(host.gpus) < 2:
        return False
    if host.topology is None:
        return None
    return any(cell[:2] == "NV" and cell[2:].isdigit() for cell in host.topology.split())


def _model(model: ModelFacts, host: HostFacts) -> dict[str, Value | None]:
    config = {**model.config, **_nested(model.config, "text_config")}
    found = {name: _first(config, keys) for name, keys in _MODEL_KEYS.items()}
    quantisation = _nested(config, "quantization_config")
    known = bool(config)
    gpu_gib = host.gpus[0].memory_mib / 1024 if host.gpus else 0.0
    return {
        "moe": (found["experts"] or 0) > 1 if known else None,
        "experts": found["experts"] or (0 if known else None),
        "top_k": found["top_k"] or (0 if known else None),
        "layers": found["layers"],
        "hidden": found["hidden"],
        "kv_heads": found["kv_heads"],
        "mla": found["kv_lora"] is not None if known else None,
        "mtp": (found["mtp_layers"] or 0) > 0 if known else None,
        "context": found["context"],
        "quant": _quant(quantisation) if known else None,
        "kv_quant": str(quantisation.get("kv_cache_quant_algo") or "none").lower() if known else None,
        "architecture": model.architecture,
        "model_gib": model.size_gib,
        # Weights, and a fifth of the card for KV cache, graphs and workspace.
        "fits_one_gpu": model.size_gib < 0.8 * gpu_gib if model.size_gib and gpu_gib else None,
    }


def _quant(quantisation: Mapping[str, Any]) -> str:
    algorithm = quantisation.get("quant_algo") or quantisation.get("quant_method") or "none"
    return str(algorithm).lower()


def _nested(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, Mapping) else {}


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    values = (config.get(key) for key in keys)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool)), None)


def _load(workload: Workload) -> dict[str, Value | None]:
    return {
        "peak": max(workload.ladder),
        "lowest": min(workload.ladder),
        "input_len": workload.input_len,
        "output_len": workload.output_len,
        "seq_len": workload.input_len + workload.output_len,
        "dataset": workload.dataset,
    }


def _memory(view: CampaignView) -> dict[str, Value | None]:
    launches = view.launches_of(view.incumbent)
    tokens, gib = (_latest(launches, name) for name in ("kv_tokens", "kv_gib"))
    length = view.workload.input_len + view.workload.output_len
    return {
        "kv_tokens": tokens,
        "kv_gib": gib,
        # Replicas and attention ranks of their own have a pool each; the engine prints one of them.
        "kv_seqs": tokens * _pools(view.incumbent) / length if tokens else None,
    }


def _latest(launches: Sequence[Launch], name: str) -> float | None:
    return next((x.memory[name] for x in reversed(launches) if name in x.memory), None)


def _pools(config: ServerConfig) -> int:
    sizes = (config.flags.get(name) for name in _POOL_FLAGS)
    return max((s for s in sizes if isinstance(s, int) and not isinstance(s, bool)), default=1)


def _current(
    view: CampaignView, config: ServerConfig, spelling: Spelling, name: str, default: Value | None
) -> Value:
    """What is in force: the configuration's value, else the engine's word at launch, else its default."""
    present = spelling.find(name, config.flags)
    if present is not None:
        return as_number(config.flags[present])
    for launch in reversed(view.launches_of(config)):
        for key in spelling.effective_keys(name):
            value = launch.effective.get(key)
            if isinstance(value, bool | int | float | str):
                return as_number(value)
    knob = spelling.declared(name)
    if knob is not None and knob.default is not None:
        return knob.default
    if default is None:
        raise UnknownFactError(f"the value of {name} in force is not known")
    return default


def as_number(value: Value) -> Value:
    """A number that somebody wrote as text, as a number."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _version(text: str | None) -> tuple[int, ...]:
    """The leading numbers of a version: 0.5.9.post1 is (0, 5, 9)."""
    if text is None:
        raise UnknownFactError("the engine's version is not known")
    numbers: list[int] = []
    for part in text.lstrip("vb").split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
