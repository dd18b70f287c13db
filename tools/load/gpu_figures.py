"""From samples of the GPUs to the figures of a rung: pure, so that they can be computed again at any time."""

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from moeagent.memory.records import GpuLoad, GpuSamples, Rung
from moeagent.tools.load.gpu_state import GpuState, parse_gpu_states, throttle_reasons
from moeagent.tools.load.sampling import Samples

LEAST_COVER = 0.5
"""Samples per second below which a window counts as not sampled: the process began late or ended early."""
SPOILT_SHARE = 0.05
"""Of the samples. A slowdown may halve the clocks, so one that holds for longer moves the rung's figures by
more than half of the smallest effect that campaigns look for."""
DIGITS = 2

Window = tuple[float, float]


def kept_samples(samples: Samples, window_s: Window, keep: Callable[[bytes], str]) -> GpuSamples | None:
    """The figures of one load with their samples kept; None when they say nothing of its window.

    window_s is by the clock of the machine that made the load, which `samples.ahead_s` sets against the
    host's.
    """
    window_s = (window_s[0] + samples.ahead_s, window_s[1] + samples.ahead_s)
    found = gpu_samples(samples.text, window_s)
    if found is None:
        return None
    return found.model_copy(update={"raw": keep(pack_samples(samples.text, window_s))})


def pack_samples(text: str, window_s: Window) -> bytes:
    """The samples as they are kept beside the per-request results."""
    content = json.dumps({"gpu_csv": text, "window_s": window_s}, separators=(",", ":"))
    return zlib.compress(content.encode(), 6)


def recompute_samples(packed: bytes) -> GpuSamples | None:
    """The figures from what `pack_samples` kept."""
    content = json.loads(zlib.decompress(packed))
    return gpu_samples(content["gpu_csv"], tuple(content["window_s"]))


def gpu_samples(text: str, window_s: Window) -> GpuSamples | None:
    """What the GPUs did from the first send to the last token, by nvidia-smi's lines.

    window_s is in the Unix time of the lines. None when too few of them lie in it.
    """
    inside = [s for s in parse_gpu_states(text) if window_s[0] <= s.at_s <= window_s[1]]
    by_gpu: dict[int, list[GpuState]] = {}
    for state in inside:
        by_gpu.setdefault(state.gpu, []).append(state)
    moments = min((len(states) for states in by_gpu.values()), default=0)
    if moments < max(1.0, (window_s[1] - window_s[0]) * LEAST_COVER):
        return None
    gpus = tuple(_gpu_load(gpu, states) for gpu, states in sorted(by_gpu.items()))
    totals = [_total(state.watts for state in at_once) for at_once in zip(*by_gpu.values(), strict=False)]
    return GpuSamples(
        moments=moments,
        gpus=gpus,
        power_w=_total(load.power_w for load in gpus),
        power_max_w=_most(totals),
        throttled=_throttled(gpus),
    )


def with_gpus(rung: Rung, samples: GpuSamples | None) -> Rung:
    """The rung with what its GPUs did: energy, and the mark of a rung that a slowdown spoilt."""
    if samples is None:
        return rung
    energy = None if samples.power_w is None else round(samples.power_w * rung.duration_s, DIGITS)
    return rung.model_copy(update={"gpu": samples, "energy_j": energy}).spoilt(samples.throttled)


def _gpu_load(gpu: int, states: Sequence[GpuState]) -> GpuLoad:
    told = [state.reasons for state in states if state.reasons is not None]
    names = [reason.name for reason in throttle_reasons()]
    held = {name: sum(name in reasons for reasons in told) / len(states) for name in names}
    return GpuLoad(
        gpu=gpu,
        power_w=_mean(s.watts for s in states),
        power_max_w=_most([s.watts for s in states]),
        sm_mhz=_mean(s.sm_mhz for s in states),
        sm_mhz_min=min((s.sm_mhz for s in states if s.sm_mhz is not None), default=None),
        mem_mhz=_mean(s.mem_mhz for s in states),
        use_percent=_mean(s.use_percent for s in states),
        memory_mib=_most([s.memory_mib for s in states]),
        celsius=_most([s.celsius for s in states]),
        held_by={name: round(share, 4) for name, share in held.items() if share},
    )


def _throttled(gpus: Sequence[GpuLoad]) -> str:
    spoilers = {reason.name for reason in throttle_reasons() if reason.spoils}
    slowed = {
        load.gpu: [name for name, share in load.held_by.items() if name in spoilers and share > SPOILT_SHARE]
        for load in gpus
    }
    said = "; ".join(f"GPU {gpu}: {', '.join(names)}" for gpu, names in slowed.items() if names)
    return f"throttled: {said}" if said else ""


def _known(values: Iterable[float | None]) -> list[float] | None:
    """The values when every one is known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return known if known and len(known) == len(found) else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), DIGITS) if known else None


def _total(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return round(sum(known), DIGITS) if known else None


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
