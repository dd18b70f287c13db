"""CPU cores: memory of any engine, and a rough model of llama.cpp's speed, right in its directions."""

from moeagent.memory.records import Workload
from moeagent.tools.predict.calibration import Calibration, factor_at
from moeagent.tools.predict.cpu_memory import cpu_memory, slot_context, slots
from moeagent.tools.predict.cpu_time import forward_ms, prefill_ms
from moeagent.tools.predict.interval import around
from moeagent.tools.predict.records import Limit, Machine, ModelShape, Prediction, RungPrediction
from moeagent.tools.predict.settings import EngineSettings

_WIDTH = 1.0
_CALIBRATED_WIDTH = 0.25
_STALLED = 0.35


def predict_cpu(
    settings: EngineSettings,
    machine: Machine,
    model: ModelShape,
    workload: Workload,
    calibration: Calibration | None,
    notes: tuple[str, ...],
) -> Prediction:
    """Memory against RAM, and speed from the cores' share of a byte-and-FLOP roofline."""
    memory = cpu_memory(settings, machine, model)
    problems = (f"does not fit: {memory.why}",) if memory.verdict == "does_not_fit" else ()
    short = slot_context(settings, model)
    if short < workload.input_len + 1:
        problems = (*problems, f"each slot holds {short} tokens, the prompts have {workload.input_len}")
    if problems:
        return Prediction(memory=memory, refusals=problems, problems=problems, notes=notes)
    if settings.engine != "llamacpp":
        blind = f"speed cannot be predicted: {settings.engine} on CPU cores has no model"
        return Prediction(memory=memory, problems=(blind,), notes=notes)
    known = calibration or Calibration()
    rungs = tuple(_rung(settings, machine, model, workload, known, c) for c in workload.ladder)
    source = "CPU: a rough roofline per core, see tables/constants.toml; intervals are a factor of two"
    return Prediction(memory=memory, rungs=rungs, notes=notes, sources=(source,))


def _rung(
    settings: EngineSettings,
    machine: Machine,
    model: ModelShape,
    workload: Workload,
    known: Calibration,
    concurrency: int,
) -> RungPrediction:
    running = min(concurrency, slots(settings))
    step = forward_ms(settings, machine, model, running, workload.input_len + workload.output_len / 2)
    prompt = prefill_ms(settings, machine, model, workload)
    stall = (running - 1) * prompt / workload.output_len
    tpot = step + stall
    service = prompt + workload.output_len * tpot
    queue = (concurrency - running) / running * service
    speed = factor_at(known.speed, concurrency)
    width = _WIDTH if speed is None else _CALIBRATED_WIDTH
    limit, why = _limit(settings, machine, running, concurrency, stall / tpot)
    return RungPrediction(
        concurrency=concurrency,
        running=running,
        output_tok_s=around(running * workload.output_len / service * 1e3 * (speed or 1.0), width),
        ttft_ms=around(prompt + queue, _WIDTH),
        tpot_ms=around(tpot / (speed or 1.0), width),
        limit=limit,
        why=why,
        terms_ms={"forward": step, "prefill of others": stall},
    )


def _limit(
    settings: EngineSettings, machine: Machine, running: int, concurrency: int, stall: float
) -> tuple[Limit, str]:
    if settings.threads and settings.threads > machine.cpu_cores:
        return "host cpu", f"{settings.threads} threads share {machine.cpu_cores} cores"
    if concurrency > running:
        return "batch cap", f"{running} slots for {concurrency} clients"
    if stall > _STALLED:
        return "prefill interference", f"other requests' prompts take {stall:.0%} of each token's time"
    return "memory bandwidth" if running == 1 else "compute", f"{machine.cpu_cores} cores"
