"""From earlier launches on this host to the corrections of the next prediction."""

from collections.abc import Iterable

from moeagent.memory.records import Launch, LaunchOutcome, Workload
from moeagent.tools.predict.buffers import graphs_gib
from moeagent.tools.predict.calibration import Calibration, factor_at, layout_key
from moeagent.tools.predict.engine_rules import defaults
from moeagent.tools.predict.kv import GIB, kv_bytes_per_token
from moeagent.tools.predict.memory import memory_table
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Machine, ModelShape, Unknown
from moeagent.tools.predict.settings import EngineSettings, read_settings

_SURVIVED_GIB = 1.5
_LENT_GIB = 0.5
"""What a survivor lends to layouts that were never launched: that there was room, not how much."""
_DIED_GIB = -0.5


def calibrate(
    launches: Iterable[Launch],
    machine: Machine | Unknown,
    model: ModelShape | Unknown,
    workload: Workload,
) -> Calibration:
    """Corrections from launches in the order in which they ran: later memory wins, speeds are averaged.

    Weights and pool come from the engine's memory lines, head-room from who survived, speed from the rungs.
    Unknown machines or models teach nothing.
    """
    found = Calibration()
    if isinstance(machine, Unknown) or isinstance(model, Unknown):
        return found
    for launch in launches:
        settings = read_settings(launch.config)
        found = _memory_lesson(found, launch, settings, machine, model)
        found = _headroom_lesson(found, launch, settings, machine, model)
        found = _speed_lesson(found, launch, machine, model, workload)
    return found


def _memory_lesson(
    known: Calibration, launch: Launch, settings: EngineSettings, machine: Machine, model: ModelShape
) -> Calibration:
    weights, tokens = launch.memory.get("weights_gib"), launch.memory.get("kv_tokens")
    if weights is None or machine.gpu_name is None:
        return known
    plain = memory_table(machine, model, settings)
    offset = weights - plain.weights_gib
    update: dict[str, object] = {
        "weights_offsets": known.weights_offsets | {layout_key(settings): offset, "": offset}
    }
    chosen = defaults(settings, model, machine.memory_mib)
    if tokens:
        pool = tokens * kv_bytes_per_token(model, settings) / GIB
        if settings.engine == "sglang":
            update["free_gib"] = (pool + weights) / chosen.fraction
        elif settings.engine == "vllm":
            update["overhead_gib"] = machine.memory_mib / 1024 * chosen.fraction - weights - pool
    if settings.engine == "sglang":
        update |= _graphs_lesson(launch, settings, graphs_gib(chosen))
    return known.model_copy(update=update)


def _graphs_lesson(launch: Launch, settings: EngineSettings, plain: float) -> dict[str, object]:
    """What each drafted token adds to the graphs, of which `plain` GiB are needed without speculation."""
    graphs, drafts = launch.memory.get("graphs_gib"), settings.draft_tokens - 1
    if not graphs or not drafts or not plain:
        return {}
    return {"graphs_per_draft": max(graphs / plain - 1, 0.0) / drafts}


def _headroom_lesson(
    known: Calibration, launch: Launch, settings: EngineSettings, machine: Machine, model: ModelShape
) -> Calibration:
    """A launch that lived through the ladder had room; one that ran out of memory under load had none."""
    if machine.gpu_name is None or settings.engine == "llamacpp":
        return known
    predicted = memory_table(machine, model, settings, known).load_headroom_gib
    before, key = known.headroom_shift(settings), layout_key(settings)
    if launch.outcome == LaunchOutcome.COMPLETED and predicted < _SURVIVED_GIB:
        shift = before - predicted
        shifts = known.headroom_shifts | {key: shift + _SURVIVED_GIB, "": shift + _LENT_GIB}
    elif _ran_out_under_load(launch) and predicted > _DIED_GIB:
        shifts = known.headroom_shifts | {key: before + _DIED_GIB - predicted}
    else:
        return known
    return known.model_copy(update={"headroom_shifts": shifts})


def _ran_out_under_load(launch: Launch) -> bool:
    failure = launch.diagnosis.failure_class if launch.diagnosis else ""
    return launch.outcome == LaunchOutcome.DIED_SERVING and failure.startswith("oom")


def _speed_lesson(
    known: Calibration, launch: Launch, machine: Machine, model: ModelShape, workload: Workload
) -> Calibration:
    usable = {r.concurrency: r for r in launch.rungs if r.usable}
    if not usable:
        return known
    ladder = tuple(sorted(usable))
    predicted = predict(launch.config, machine, model, workload.model_copy(update={"ladder": ladder}))
    speed, ttft, drafted = dict(known.speed), dict(known.ttft), dict(known.drafted)
    drafts = read_settings(launch.config).draft_tokens - 1
    # Once the machine is known without it, what is missed of a launch that speculates is missed of that.
    for rung in predicted.rungs:
        measured = usable[rung.concurrency]
        if measured.output_tok_s:
            ratio = measured.output_tok_s / rung.output_tok_s.value
            if drafts and known.speed:
                drafted[rung.concurrency] = ratio / (factor_at(known.speed, rung.concurrency) or 1.0)
            else:
                speed[rung.concurrency] = _blend(speed.get(rung.concurrency), ratio)
        if measured.ttft_ms is not None:
            ttft[rung.concurrency] = _blend(
                ttft.get(rung.concurrency), measured.ttft_ms.p50 / rung.ttft_ms.value
            )
    return known.model_copy(
        update={"speed": speed, "ttft": ttft, "drafted": drafted, "drafts": drafts or known.drafts}
    )


def _blend(old: float | None, new: float) -> float:
    return new if old is None else (old + new) / 2
