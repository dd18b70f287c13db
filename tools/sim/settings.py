"""From the command line to the settings in force, by the engine's rules (sglang 0.5.9, server_args.py)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moeagent.tools.sim.rules import Rule, matching
from moeagent.tools.sim.world import World

KV_WIDTH = {"bf16": 2.0, "bfloat16": 2.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "fp4_e2m1": 0.5625}
SPECULATIVE_SLOTS = 48
_LADDER = (
    (20, 2048, 8, 8),
    (35, 2048, 24, 80),
    (60, 4096, 32, 160),
    (90, 8192, 256, 512),
    (160, 8192, 256, 512),
)


@dataclass(frozen=True)
class Refusal:
    """A failure that is certain before any memory is touched."""

    stage: str
    trace: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """What is in force after the engine's adjustments."""

    args: Mapping[str, Any]
    """Server arguments by destination name, as the server_args line shows them."""
    env: Mapping[str, str]
    rules: tuple[Rule, ...]
    notices: tuple[str, ...]
    refusal: Refusal | None
    graph_bs: int
    """Largest captured decode batch; 0 without CUDA graphs."""
    draft_tokens: int
    """Tokens of one verify pass for each request; 1 without speculation."""

    @property
    def tp(self) -> int:
        """Tensor-parallel ranks."""
        return int(self.args["tp_size"])

    @property
    def ranks(self) -> int:
        """GPUs in use."""
        return self.tp * int(self.args["pp_size"]) * self.replicas

    @property
    def replicas(self) -> int:
        """Whole copies of the model side by side: --dp-size without DP attention."""
        return 1 if self.args["enable_dp_attention"] else int(self.args["dp_size"])

    @property
    def groups(self) -> int:
        """Parts that the running batch is split into, each with a pool of its own."""
        return self.attention_groups * self.replicas

    @property
    def expert_parallel(self) -> bool:
        """True when experts are spread whole over the ranks."""
        return int(self.args["ep_size"]) > 1

    @property
    def all_to_all(self) -> bool:
        """True with an all-to-all back end."""
        return str(self.args["moe_a2a_backend"]) != "none"

    @property
    def attention_groups(self) -> int:
        """Data-parallel attention groups; 1 without --enable-dp-attention."""
        return int(self.args["dp_size"]) if self.args["enable_dp_attention"] else 1

    @property
    def speculative(self) -> bool:
        """True with a draft model."""
        return self.draft_tokens > 1

    @property
    def kv_width(self) -> float:
        """Bytes of one cached value."""
        return KV_WIDTH[str(self.args["kv_cache_dtype"])]

    @property
    def channels(self) -> int:
        """NCCL channels in use."""
        low = _integer(self.env.get("NCCL_MIN_NCHANNELS"), 2)
        return min(low, _integer(self.env.get("NCCL_MAX_NCHANNELS"), 64))

    def has_any(self, entries: tuple[str, ...]) -> bool:
        """True when one of these dest=value entries is in force."""
        pairs = (entry.partition("=") for entry in entries)
        return any(str(self.args.get(name)) == value for name, _, value in pairs)

    def switched_on(self, name: str) -> bool:
        """True when a server argument (by destination name) or a variable is given and not off."""
        if name in self.env:
            return self.env[name] not in ("", "0", "false", "False")
        return bool(self.args.get(name))


def _integer(text: str | None, default: int) -> int:
    return int(text) if text and text.isdigit() else default


def default_sizes(memory_mib: int, tp: int) -> tuple[int, int]:
    """Chunk and largest graph batch that the engine picks for a GPU of this size."""
    for limit_gib, chunk, small, large in _LADDER:
        if memory_mib < limit_gib * 1024:
            return chunk, small if tp < 4 else large
    return 16384, 512


def auto_fraction(args: Mapping[str, Any], memory_mib: int, graph_bs: int, multimodal: float) -> float:
    """--mem-fraction-static as the engine computes it when it is not given."""
    chunk = int(args["chunked_prefill_size"])
    reserved = 512 + 1.5 * max(chunk if chunk > 0 else int(args["max_prefill_tokens"]), 2048)
    reserved += 2 * graph_bs + args["tp_size"] * args["pp_size"] * 128
    if args["enable_dp_attention"]:
        reserved += 3 * graph_bs * args["dp_size"] * (1.5 if graph_bs > 300 else 1.0)
    if args["enable_piecewise_cuda_graph"]:
        reserved += 8 * 30
    if memory_mib > 60 * 1024:
        reserved = max(reserved, 10240)
    algorithm = args["speculative_algorithm"]
    reserved += {None: 0, "NGRAM": 0, "STANDALONE": 6144}.get(algorithm, 2048)
    return float(round((memory_mib - reserved) / memory_mib, 3)) * multimodal


def _adjust_parallelism(args: dict[str, Any], notices: list[str]) -> None:
    if args["moe_a2a_backend"] != "none":
        args["ep_size"] = args["tp_size"]
        name = {"flashinfer": "Flashinfer MoE A2A", "deepep": "DeepEP MoE"}.get(
            args["moe_a2a_backend"], "MoE A2A"
        )
        notices.append(
            f"{name} is enabled. The expert parallel size is adjusted to be the same as the tensor parallel "
            f"size[{args['tp_size']}]."
        )
    if args["moe_a2a_backend"] == "flashinfer":
        args["disable_shared_experts_fusion"] = True
    if args["enable_dp_attention"] and args["dp_size"] == 1:
        args["enable_dp_attention"] = False
    if args["enable_dp_attention"]:
        args["schedule_conservativeness"] *= 0.3
        notices.append(
            f"DP attention is enabled. The chunked prefill size is adjusted to "
            f"{args['chunked_prefill_size'] // args['dp_size']} to avoid MoE kernel issues."
        )
        args["chunked_prefill_size"] //= args["dp_size"]


def _adjust_speculation(args: dict[str, Any], env: Mapping[str, str], notices: list[str]) -> int:
    if not args["speculative_algorithm"]:
        return 1
    if args["speculative_algorithm"] == "NEXTN":
        args["speculative_algorithm"] = "EAGLE"
    if args["max_running_requests"] is None:
        args["max_running_requests"] = SPECULATIVE_SLOTS
        notices.append(
            "Max running requests is reset to 48 for speculative decoding. You can override this by "
            "explicitly "
            "setting --max-running-requests."
        )
    if env.get("SGLANG_ENABLE_SPEC_V2") != "1" and not args["disable_overlap_schedule"]:
        args["disable_overlap_schedule"] = True
        notices.append("Overlap scheduler is disabled because of using eagle speculative decoding.")
    if args["speculative_num_steps"] is None:
        args |= {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
    args["speculative_eagle_topk"] = args["speculative_eagle_topk"] or 1
    if args["speculative_eagle_topk"] == 1:
        args["speculative_num_draft_tokens"] = args["speculative_num_steps"] + 1
    args["enable_mixed_chunk"] = False
    return int(args["speculative_num_draft_tokens"] or 4)


def _refusal(args: Mapping[str, Any], world: World, draft_given: bool) -> Refusal | None:
    model, tp = world.model, args["tp_size"]
    if args["moe_a2a_backend"] == "flashinfer" and args["moe_runner_backend"] != "flashinfer_cutlass":
        return Refusal("args", "a2a-runner-args", args)
    if model.heads % tp or (model.experts and model.expert_inter % tp):
        return Refusal("load", "divisible-args", {**args, "heads": model.heads})
    copies = 1 if args["enable_dp_attention"] else args["dp_size"]
    if args["enable_dp_attention"] and tp % args["dp_size"]:
        return Refusal("args", "dp-args", args)
    if tp * args["pp_size"] * copies > world.machine.count:
        return Refusal("dist", "gpu-count", args)
    if args["chunked_prefill_size"] > 0 and args["chunked_prefill_size"] % (args["page_size"] or 1):
        return Refusal("args", "chunk-args", args)
    known = (*model.draft_algorithms, "NGRAM")
    if args["speculative_algorithm"] and args["speculative_algorithm"] not in known and not draft_given:
        return Refusal("args", "spec-args", args)
    return None


def _graph_batch(args: Mapping[str, Any], default: int) -> int:
    if args["disable_cuda_graph"]:
        return 0
    if args["cuda_graph_bs"]:
        return int(max(args["cuda_graph_bs"]))
    return int(args["cuda_graph_max_bs"] or default)


def resolve(parsed: Mapping[str, Any], env: Mapping[str, str], world: World) -> Settings:
    """The settings in force in this world."""
    args, model = dict(parsed), world.model
    notices: list[str] = []
    chunk, graph_default = default_sizes(world.machine.memory_mib, args["tp_size"])
    if args["chunked_prefill_size"] is None:
        args["chunked_prefill_size"] = chunk
    if args["page_size"] is None:
        args["page_size"] = model.page_size
    args["attention_backend"] = args["attention_backend"] or model.attention
    draft_given = bool(args["speculative_draft_model_path"])
    _adjust_parallelism(args, notices)
    draft_tokens = _adjust_speculation(args, env, notices)
    if args["pp_size"] > 1:
        args["disable_overlap_schedule"] = True
    rules = matching({**args, "kv_cache_dtype": parsed["kv_cache_dtype"]}, env, world)
    refusal = _refusal(args, world, draft_given)
    if args["kv_cache_dtype"] == "auto":
        args["kv_cache_dtype"] = model.kv_auto
    args["cuda_graph_max_bs"] = graph_bs = _graph_batch(args, graph_default)
    if args["mem_fraction_static"] is None:
        factor = model.multimodal_factor
        args["mem_fraction_static"] = auto_fraction(args, world.machine.memory_mib, graph_bs, factor)
    for rule in rules:
        if rule.notice:
            notices.append(rule.notice.format(**args))
    limit = args["max_running_requests"]
    captured = min(graph_bs, limit) if limit else graph_bs
    return Settings(args, dict(env), rules, tuple(notices), refusal, captured, draft_tokens)
