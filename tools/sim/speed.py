"""How long one forward pass takes in a world, by batch and context.

The skeleton is the published arithmetic of MoE serving (weights, cache and experts read, all-reduce by
message size); what makes a world hard to predict is hidden: skew, launch overhead, host time,
throttling, and factors of back ends that no formula gives.
"""

import math
from functools import cached_property

from moeagent.tools.sim.settings import Settings
from moeagent.tools.sim.world import World

US = 1e-6
MSCCLPP_MAX_BYTES = 1 << 20
MSCCLPP_SHARE = 3.0
"""All-reduces are at most about a third of a step: what a gain of the whole asks of them."""
ROW_BYTES = 12.0
"""Activation traffic of one routed row, per hidden value."""
PREFILL_EFFICIENCY = 0.62
SHARED_EXPERT_FUSION = 0.985
THROTTLE_BATCH = 512.0
OVERLAP_LEFT = 0.08
"""Share of the host's work that the overlap scheduler cannot hide."""


class Speed:
    """Times of one configuration in one world, in seconds."""

    def __init__(self, world: World, settings: Settings) -> None:
        self._world, self._settings = world, settings
        self._model, self._machine, self._hidden = world.model, world.machine, world.hidden
        self._stages = int(settings.args["pp_size"])
        self._factor = world.pace * (1.0 if world.hidden.flat else self._switch_factor())

    def decode_step(self, batch: int, context: float) -> float:
        """One decode step of a running batch whose requests hold `context` tokens on average."""
        micro = max(batch / self._stages / self._settings.groups, 1.0)
        tokens = micro * self._settings.draft_tokens
        device = self._forward(tokens) + self._attention(micro, context)
        if self._settings.speculative:
            device += (self._model.draft_us + self._hidden.verify_extra_us) * US * (1.0 + micro / 128.0)
        device = self._launched(device, batch)
        device *= 1.0 + self._hidden.throttle * min(tokens / THROTTLE_BATCH, 1.0)
        if self._settings.attention_groups > 1:
            device *= self._hidden.dp_attention
        if self._stages > 1:
            device *= self._stages * self._hidden.pipeline_bubble
        return self._with_host(device * self._factor, batch)

    def tokens_per_step(self) -> float:
        """Tokens that one decode step yields for each request."""
        if not self._settings.speculative:
            return 1.0
        drafts = self._settings.draft_tokens - 1
        reachable = self._model.accept * self._hidden.accept
        return max(min(reachable * (1.0 + 0.06 * (drafts - 3)), drafts + 1.0), 1.0)

    def prefill(self, tokens: int) -> float:
        """One prefill pass over this many new tokens."""
        share = tokens / self._settings.replicas
        flops = self._model.active_flops * share * self._settings.replicas / self._settings.ranks
        compute = flops / (self._tensor_rate() * PREFILL_EFFICIENCY)
        weights = self._resident_bytes() / self._bandwidth()
        wire = self._collectives(share, captured=False)
        base = self._model.layers / self._stages * self._hidden.misc_us * 3.0 * US
        time = max(compute * self._runner_factor() ** 0.5, weights) + wire + base
        return float(time * self._factor * self._chunk_factor())

    # parts of a forward pass

    def _forward(self, tokens: float) -> float:
        layers = self._model.layers / self._stages
        dense = self._resident_bytes() / self._bandwidth()
        misc = layers * self._hidden.misc_us * US
        return float(dense + misc + self._experts(tokens) + self._collectives(tokens, captured=True))

    def _resident_bytes(self) -> float:
        """Weights beside the routed experts that one forward pass reads on one rank."""
        model, tp = self._model, self._settings.tp
        attention = model.replicated_bytes + model.sharded_bytes / max(
            tp // self._settings.attention_groups, 1
        )
        layers = attention + (model.shared_bytes + model.dense_layer_bytes) / tp + model.router_bytes
        fused = 1.0 if self._settings.args["disable_shared_experts_fusion"] else SHARED_EXPERT_FUSION
        return layers * fused * self._gemm_factor() / self._stages + 0.5 * model.vocab_bytes / tp

    def _experts(self, tokens: float) -> float:
        model, machine, tp = self._model, self._machine, self._settings.tp
        if not model.experts:
            return 0.0
        tokens *= self._settings.attention_groups
        hit = model.experts * (1.0 - (1.0 - model.top_k / model.experts) ** tokens)
        rows = tokens * model.top_k
        share = 1.0 / tp
        if self._settings.expert_parallel:
            crowding = 1.0 + 1.56 / max(tokens, 1.0) ** 0.5
            busiest = min(hit / tp * crowding * self._hidden.expert_skew, model.experts / tp)
            hit, rows, share = busiest, rows / tp * self._hidden.expert_skew, 1.0
        read = hit * model.expert_weight_bytes * share / self._bandwidth()
        math = rows * 6.0 * model.hidden * model.expert_inter * share / self._tensor_rate()
        traffic = rows * model.hidden * ROW_BYTES / self._bandwidth()
        base = (model.moe_base_us or machine.moe_base_us) * US
        layer = base + max(read, math) + hit * machine.expert_us * US + traffic
        return float(layer * model.moe_layers / self._stages * self._runner_factor())

    def _attention(self, batch: float, context: float) -> float:
        settings, model = self._settings, self._model
        attention_tp = max(settings.tp // settings.attention_groups, 1)
        cached = model.kv_bytes(attention_tp, settings.kv_width) / self._stages * batch * context
        narrow = self._hidden.narrow_cache if settings.kv_width < 2.0 and model.kv_auto == "bfloat16" else 1.0
        factor = self._hidden.attention.get(str(settings.args["attention_backend"]), 1.0)
        speculative = 1.0 + 0.15 * (settings.draft_tokens - 1)
        fixed = model.layers / self._stages * 6.0 * US
        read = cached / (self._bandwidth() * self._hidden.kv_read) * narrow * speculative
        return float(factor * (fixed + read) if not self._hidden.flat else fixed + read)

    def _collectives(self, tokens: float, *, captured: bool) -> float:
        """All-reduces, or what data-parallel attention and expert parallelism put in their place."""
        settings, model = self._settings, self._model
        if settings.tp == 1:
            return 0.0
        layers = model.layers / self._stages
        message = tokens * model.hidden * 2.0
        reduces = 2.0 * layers
        extra = 0.0
        if settings.attention_groups > 1:
            reduces -= layers
            extra += layers * (
                2.0 * self._machine.hop_us * US + 0.5 * self._reduce(message * settings.tp, captured)
            )
        if settings.all_to_all:
            moe = model.moe_layers / self._stages
            reduces -= moe
            extra = (
                moe * self._all_to_all(tokens)
                if settings.attention_groups > 1
                else extra
                + moe * (self._all_to_all(tokens / settings.tp) + 0.5 * self._reduce(message, captured))
            )
        return float(max(reduces, 0.0) * self._reduce(message, captured) + extra)

    def _all_to_all(self, rank_tokens: float) -> float:
        model, tp = self._model, self._settings.tp
        ranks_hit = tp * (1.0 - (1.0 - 1.0 / tp) ** model.top_k)
        wire = rank_tokens * ranks_hit * (1.0 - 1.0 / tp) * model.hidden * (model.expert_bytes + 2.0)
        rate = self._machine.simple_gb_s * 1.75e9 * self._hidden.link
        return 2.0 * self._hidden.a2a_us * US + wire / rate

    def _reduce(self, message: float, captured: bool) -> float:
        """One all-reduce over the tensor-parallel ranks."""
        machine, env = self._machine, self._settings.env
        tuned = 0 < self._hidden.tuned_channels <= self._settings.channels
        small = machine.tuned_ll_gb_s if tuned else machine.ll_gb_s
        large = machine.tuned_simple_gb_s if tuned else machine.simple_gb_s
        shrink = (self._settings.tp / machine.count) ** 0.5
        low = machine.ll_alpha_us * shrink * US + message / (small * 1e9)
        high = (machine.ll_alpha_us if tuned else machine.simple_alpha_us) * shrink * US + message / (
            large * 1e9
        )
        protocol = env.get("NCCL_PROTO", "")
        simple = protocol == "Simple" or (protocol != "LL" and message > machine.ll_max_bytes)
        time = (high if simple else min(low, high) if tuned else low) / self._hidden.link
        if env.get("NCCL_P2P_DISABLE") == "1":
            time = time * 1.8 + 28.0 * US
        if env.get("NCCL_ALGO", "").lower() == "tree":
            time *= 1.25
        if captured and self._settings.args["enable_mscclpp"] and message <= MSCCLPP_MAX_BYTES:
            time *= 1.0 - MSCCLPP_SHARE * self._hidden.mscclpp
        return float(time)

    # what surrounds it

    def _launched(self, device: float, batch: int) -> float:
        if 0 < batch <= self._settings.graph_bs:
            return device
        launch = self._model.layers / self._stages * self._hidden.eager_layer_us * US
        return max(device * 1.025, launch + 0.15 * device)

    def _with_host(self, device: float, batch: int) -> float:
        hidden, args = self._hidden, self._settings.args
        workers = max(int(args["tokenizer_worker_num"]), 1)
        spread = max(int(args["stream_interval"]), 1) * float(min(workers, 4) ** 0.5)
        host = (hidden.host_step_us + (hidden.host_request_us + hidden.detokenise_us / spread) * batch) * US
        if args["disable_overlap_schedule"]:
            return device + host
        return max(device, host) + OVERLAP_LEFT * min(device, host)

    def _bandwidth(self) -> float:
        return self._machine.bandwidth_gb_s * 1e9 * self._hidden.bandwidth

    def _tensor_rate(self) -> float:
        peak = self._model.tensor_tflops or self._machine.tensor_tflops
        return peak * 1e12 * self._hidden.compute

    def _runner_factor(self) -> float:
        return 1.0 if self._hidden.flat else self._runner

    @cached_property
    def _runner(self) -> float:
        return float(self._hidden.runner.get(str(self._settings.args["moe_runner_backend"]), 1.0))

    def _gemm_factor(self) -> float:
        backend = str(self._settings.args["fp4_gemm_runner_backend"])
        return 1.0 if self._hidden.flat else self._hidden.gemm.get(backend, 1.0)

    def _chunk_factor(self) -> float:
        chunk = int(self._settings.args["chunked_prefill_size"])
        doublings = math.log2(max(chunk, 512) / 8192.0) if chunk > 0 else 1.0
        return max(1.0 + self._hidden.chunk_slope * doublings, 0.5)

    def _switch_factor(self) -> float:
        """Factors of switches that no arithmetic explains, alone and in pairs."""
        on, factor = self._settings.switched_on, 1.0
        for name, value in self._hidden.speed_of.items():
            factor *= value if on(name) else 1.0
        for one, other, value in self._hidden.couples:
            factor *= value if on(one) and on(other) else 1.0
        return factor
