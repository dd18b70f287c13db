"""Time of dense and grouped GEMMs on one GPU, by lines fitted to measured kernels."""

from typing import Literal

from moeagent.tools.predict import tables
from moeagent.tools.predict.records import ModelShape
from moeagent.tools.predict.settings import EngineSettings
from moeagent.tools.predict.tables.schema import GemmLine, GpuSpec, MoeLine

_BF16 = 2
_MEGA = 1e6
_GIGA = 1e9
Rate = Literal["bfloat16", "fp8", "fp4"]


def gemm_us(
    spec: GpuSpec, format_name: str, params: float, tokens: float, *, calls: int, width: float
) -> float:
    """So many GEMMs over this many weights in all; width is the sum of their input and output widths."""
    weight = tables.weight_formats()[format_name]
    line = _gemm_line(spec, weight.kernels)
    bandwidth, compute = _scale(spec, "bfloat16" if line.dtype == "bfloat16" else weight.rate)
    time = calls * line.t0_us
    time += params * weight.bytes_per_param / _MEGA / (line.tb_s * bandwidth)
    time += 2 * params * tokens / _GIGA / (line.tflops * compute) * 1e3
    return time + line.act_us_per_mb / bandwidth * tokens * width * _BF16 / _MEGA


def moe_us(
    spec: GpuSpec, model: ModelShape, settings: EngineSettings, format_name: str, tokens: float
) -> float:
    """The routed experts of one layer on the busiest rank, for the tokens of all ranks together."""
    moe = model.moe
    if moe is None or tokens <= 0:
        return 0.0
    weight = tables.weight_formats()[format_name]
    line = _moe_line(spec, settings.engine, weight.kernels)
    bandwidth, compute = _scale(
        spec, "bfloat16" if "a16" in line.dtype or "int4" in line.dtype else weight.rate
    )
    ep = settings.expert_ep
    inter = moe.inter * ep / settings.expert_ranks
    one = moe.matrices * model.hidden * inter
    hit = busiest_experts(moe.experts, moe.top_k, tokens, ep)
    rows = tokens * moe.top_k / ep * (tables.constant("expert_skew") if ep > 1 else 1.0)
    time = line.t0_us + line.expert_us * hit
    time += hit * one * weight.bytes_per_param / _MEGA / (line.tb_s * bandwidth)
    time += 2 * one * rows / _GIGA / (line.tflops * compute) * 1e3
    return time + line.act_us_per_mb / bandwidth * rows * model.hidden / _MEGA


def distinct_experts(experts: int, top_k: int, tokens: float) -> float:
    """Experts of one layer that so many tokens reach, uniform routing."""
    return float(experts * (1 - (1 - top_k / experts) ** tokens))


def busiest_experts(experts: int, top_k: int, tokens: float, ep: int) -> float:
    """Distinct experts that the busiest of ep ranks has to read."""
    mean = distinct_experts(experts, top_k, tokens) / ep
    if ep == 1:
        return mean
    local = experts / ep
    spread = (mean * (1 - mean / local)) ** 0.5 if mean < local else 0.0
    return float(min(mean + tables.constant("expert_spread") * spread, local))


def ridge_rows(spec: GpuSpec, format_name: str) -> float:
    """Rows per weight matrix above which a GEMM is bound by compute and no longer by reading the weights."""
    weight = tables.weight_formats()[format_name]
    rate = spec.tflops.get(weight.rate, spec.tflops["bfloat16"])
    return rate * weight.bytes_per_param / (2 * spec.bandwidth_tb_s)


def _gemm_line(spec: GpuSpec, dtypes: tuple[str, ...]) -> GemmLine:
    known = tables.gemm_lines()
    found = (known[key] for d in (*dtypes, "bfloat16") if (key := (spec.kernels, d)) in known)
    return next(found)


def _moe_line(spec: GpuSpec, engine: str, dtypes: tuple[str, ...]) -> MoeLine:
    known = tables.moe_lines()
    keys = ((spec.kernels, e, d) for d in (*dtypes, "bfloat16") for e in (engine, "vllm", "sglang"))
    return next(known[key] for key in keys if key in known)


def _scale(spec: GpuSpec, rate: Rate) -> tuple[float, float]:
    """Bandwidth and compute of this card over those of the card on which its kernels were measured."""
    reference = tables.kernel_references()[spec.kernels]
    mine, theirs = spec.tflops.get(rate), reference.tflops.get(rate)
    if mine is None or theirs is None:
        mine, theirs = spec.tflops["bfloat16"], reference.tflops["bfloat16"]
    return spec.bandwidth_tb_s / reference.bandwidth_tb_s, mine / theirs
