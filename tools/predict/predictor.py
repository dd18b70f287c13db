"""The predictor's face: one configuration in; memory, speed, limits and problems out."""

from collections.abc import Callable

from moeagent.memory.records import ServerConfig, Workload
from moeagent.tools.predict import cpu, tables
from moeagent.tools.predict.batch import Setting
from moeagent.tools.predict.calibration import Calibration
from moeagent.tools.predict.collectives import fabric_in_use
from moeagent.tools.predict.engine_rules import defaults
from moeagent.tools.predict.feasibility import impossible
from moeagent.tools.predict.interval import estimates
from moeagent.tools.predict.memory import memory_table
from moeagent.tools.predict.published import published, published_factor
from moeagent.tools.predict.records import (
    Machine,
    MemoryTable,
    ModelShape,
    Prediction,
    RungPrediction,
    Unknown,
)
from moeagent.tools.predict.serving import serve
from moeagent.tools.predict.settings import EngineSettings, read_settings
from moeagent.tools.predict.step_times import LineTimes, StepTimes

TimesOf = Callable[[Setting, Workload], StepTimes]


def predict(
    config: ServerConfig,
    machine: Machine | Unknown,
    model: ModelShape | Unknown,
    workload: Workload,
    calibration: Calibration | None = None,
    *,
    times_of: TimesOf = LineTimes,
) -> Prediction:
    """What is expected of a configuration; what cannot be predicted is said in `problems`, never raised.

    times_of makes the source of step times, which the answer names. Raises InputError only for a
    configuration that is itself malformed, such as an unknown engine.
    """
    settings = read_settings(config)
    unknown = tuple(str(part) for part in (machine, model) if isinstance(part, Unknown))
    if isinstance(machine, Unknown) or isinstance(model, Unknown):
        return Prediction(problems=unknown)
    notes = (*machine.notes, *model.notes, *_flag_notes(config, settings, machine))
    if settings.engine == "llamacpp" and machine.gpu_name is not None and settings.gpu_layers != 0:
        why = "llama.cpp on GPUs has no model here; with -ngl 0 it is predicted on the CPU cores"
        return Prediction(problems=(f"memory and speed cannot be predicted: {why}",), notes=notes)
    if machine.gpu_name is None or settings.engine == "llamacpp":
        return cpu.predict_cpu(settings, machine, model, workload, calibration, notes)
    refusals = impossible(settings, machine, model)
    memory = memory_table(machine, model, settings, calibration)
    if memory.verdict == "does_not_fit":
        refusals = (*refusals, f"does not fit: {memory.why}")
    blind = f"speed cannot be predicted: {machine.gpu_name} is not in the table of GPUs"
    if refusals or machine.spec is None:
        problems = refusals if machine.spec else (*refusals, blind)
        return Prediction(memory=memory, refusals=refusals, problems=problems, notes=notes)
    at = speed_setting(machine, model, settings)
    times = times_of(at, workload)
    return Prediction(
        memory=memory,
        rungs=_rungs(at, times, memory, workload, calibration or Calibration(), config, machine),
        prefill_tok_s=workload.input_len / times.prefill_ms(1) * 1e3,
        notes=notes,
        sources=_sources(at, times, calibration),
    )


def _rungs(
    at: Setting,
    times: StepTimes,
    memory: MemoryTable,
    workload: Workload,
    known: Calibration,
    config: ServerConfig,
    machine: Machine,
) -> tuple[RungPrediction, ...]:
    served = [serve(at, times, memory, workload, concurrency) for concurrency in workload.ladder]
    factors = [published_factor(config, machine, concurrency) for concurrency in workload.ladder]
    return tuple(
        estimates(at, one, known, factor=factor) for one, factor in zip(served, factors, strict=True)
    )


def speed_setting(machine: Machine, model: ModelShape, settings: EngineSettings) -> Setting:
    """What every forward of this configuration shares. Raises LookupError for a GPU without a table entry."""
    if machine.spec is None:
        raise LookupError(f"{machine.gpu_name} is not in the table of GPUs")
    fabric = fabric_in_use(machine, settings)
    chosen = defaults(settings, model, machine.memory_mib)
    return Setting(
        spec=machine.spec,
        fabric=fabric,
        model=model,
        settings=settings,
        graph_bs=chosen.graph_bs,
        chunk=chosen.chunk,
    )


def _flag_notes(config: ServerConfig, settings: EngineSettings, machine: Machine) -> tuple[str, ...]:
    """Which flags have published effects, which change nothing, which nothing is known about."""
    known = {prior.flag: prior for prior, _ in published(config, machine, 1)} if machine.spec else {}
    notes = [f"{flag}: effect as published: {prior.source}" for flag, prior in known.items()]
    blind = [flag for flag in settings.unmodelled if flag not in known]
    if blind:
        notes.append(f"not modelled, taken as without effect: {', '.join(blind)}")
    if settings.no_effect:
        notes.append(f"known to change no measured figure: {', '.join(settings.no_effect)}")
    return tuple(notes)


def _sources(at: Setting, times: StepTimes, calibration: Calibration | None) -> tuple[str, ...]:
    gpu = f"GPU: {at.spec.name}, {at.spec.source}"
    kernels = f"kernels: {times.source}, aiconfigurator-core 0.12.0, {at.spec.kernels}"
    fabric = f"collectives: {at.fabric.name}, {at.fabric.source}"
    rule = tables.engine_map(at.settings.engine)
    memory = f"memory rule: {rule.memory.source}" if rule else ""
    corrected = ("corrected by this host's own launches",) if calibration and calibration.speed else ()
    return (gpu, kernels, fabric, memory, *corrected)
