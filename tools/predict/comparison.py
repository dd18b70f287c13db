"""One configuration or two, with everything that can be said about them before a launch."""

from pathlib import Path

from moeagent.memory.records import PredictedEffect, Record, ServerConfig, Workload
from moeagent.tools.predict import tables
from moeagent.tools.predict.effects import effects
from moeagent.tools.predict.kernel_tables import table_times
from moeagent.tools.predict.parameters import active, count
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Machine, ModelShape, Prediction, Unknown
from moeagent.tools.predict.risk import risk_of
from moeagent.tools.predict.tiles import TileFit, tile_table, triton_too_large

_TILES = {"nvfp4": "NVFP4", "mxfp4": "MXFP8", "fp8": "FP8", "fp8_block": "FP8", "bfloat16": "BF16"}


class Candidate(Record):
    """A configuration and what is expected of it."""

    config: ServerConfig
    prediction: Prediction
    risk: float
    risk_why: str
    looked_up: Prediction | None = None
    """The same with step times from measured kernels, where that source has them."""
    not_looked_up: str = ""
    engine_refuses: tuple[str, ...] = ()
    """Why the engine would not start, by its own flags and rules."""
    engine_remarks: tuple[str, ...] = ()
    """What it would ignore, overwrite or run against its purpose."""


class Comparison(Record):
    """The answer of `moeagent predict`."""

    machine: str
    model: str
    workload: Workload
    first: Candidate
    second: Candidate | None = None
    effects: tuple[PredictedEffect, ...] = ()
    """Of the second against the first."""
    tiles: tuple[TileFit, ...] = ()
    """CUTLASS tiles of the experts' type on this GPU that do not simply fit."""
    triton: tuple[str, ...] = ()
    flags_checked: str = ""
    """The engine version whose flags and rules were asked, and where they are from."""


def compare(
    first: ServerConfig,
    second: ServerConfig | None,
    machine: Machine | Unknown,
    model: ModelShape | Unknown,
    workload: Workload,
    *,
    model_folder: Path | None = None,
) -> Comparison:
    """Predict one or two configurations; with a model folder also by look-up in measured kernels.

    Raises InputError for a malformed configuration.
    """
    one = _candidate(first, machine, model, workload, model_folder)
    two = _candidate(second, machine, model, workload, model_folder) if second else None
    return Comparison(
        machine=str(machine) if isinstance(machine, Unknown) else _machine_text(machine),
        model=str(model) if isinstance(model, Unknown) else _model_text(model),
        workload=workload,
        first=one,
        second=two,
        effects=effects(first, second, machine, model, workload) if second else (),
        tiles=_tiles(machine, model),
        triton=_triton(machine),
    )


def _candidate(
    config: ServerConfig,
    machine: Machine | Unknown,
    model: ModelShape | Unknown,
    workload: Workload,
    model_folder: Path | None,
) -> Candidate:
    prediction = predict(config, machine, model, workload)
    chance, why = risk_of(config, prediction, machine, model)
    candidate = Candidate(config=config, prediction=prediction, risk=chance, risk_why=why)
    if model_folder is None or not prediction.rungs or config.engine == "llamacpp":
        return candidate
    source = table_times(model_folder)
    if isinstance(source, Unknown):
        return candidate.model_copy(update={"not_looked_up": source.why})
    try:
        found = predict(config, machine, model, workload, times_of=source)
    except LookupError as error:
        return candidate.model_copy(update={"not_looked_up": str(error)})
    return candidate.model_copy(update={"looked_up": found})


def _machine_text(machine: Machine) -> str:
    if machine.gpu_name is None:
        return f"{machine.cpu_cores} CPU cores, {machine.memory_mib / 1024:.0f} GiB RAM"
    link = f", {machine.fabric}" if machine.gpu_count > 1 else ""
    return f"{machine.gpu_count} x {machine.gpu_name}, {machine.memory_mib / 1024:.1f} GiB each{link}"


def _model_text(model: ModelShape) -> str:
    size = f"{_billions(count(model).total)} parameters, {_billions(active(model))} active"
    return (
        f"{model.architecture}: {size}, experts {model.formats.experts}, attention {model.formats.attention}"
    )


def _billions(parameters: int) -> str:
    return f"{parameters / 1e9:.1f} B" if parameters >= 1e8 else f"{parameters / 1e6:.1f} M"


def _tiles(machine: Machine | Unknown, model: ModelShape | Unknown) -> tuple[TileFit, ...]:
    if isinstance(machine, Unknown) or isinstance(model, Unknown) or machine.spec is None:
        return ()
    if not machine.spec.sm.startswith(tables.tile_rules().sm):
        return ()
    kind = _TILES.get(model.formats.experts)
    fits = tile_table(machine.spec.smem_block_bytes, kind) if kind else ()
    return tuple(t for t in fits if t.verdict != "fits")


def _triton(machine: Machine | Unknown) -> tuple[str, ...]:
    if isinstance(machine, Unknown) or machine.spec is None:
        return ()
    return triton_too_large(machine.spec.smem_block_bytes)
