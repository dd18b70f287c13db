"""The predictor's knowledge: TOML tables with a source per row, validated when first used."""

import functools
import tomllib
from importlib.resources import files
from typing import Any

from pydantic import TypeAdapter

from moeagent.tools.predict.tables.schema import (
    Architectures,
    EngineMap,
    Fabric,
    Fitted,
    GemmLine,
    GpuSpec,
    Hazard,
    KernelReference,
    KvFormat,
    MoeLine,
    Prior,
    TileRules,
    WeightFormat,
)


@functools.cache
def _load(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


@functools.cache
def gpus() -> tuple[GpuSpec, ...]:
    """GPU models, the most specific names first."""
    return TypeAdapter(tuple[GpuSpec, ...]).validate_python(_load("gpus")["gpu"])


@functools.cache
def fabrics() -> dict[str, Fabric]:
    """All-reduce tables by name."""
    rows = TypeAdapter(tuple[Fabric, ...]).validate_python(_load("fabrics")["fabric"])
    return {row.name: row for row in rows}


@functools.cache
def gemm_lines() -> dict[tuple[str, str], GemmLine]:
    """Measured dense GEMMs by (kernels, dtype)."""
    rows = TypeAdapter(tuple[GemmLine, ...]).validate_python(_load("kernels")["gemm"])
    return {(row.kernels, row.dtype): row for row in rows}


@functools.cache
def moe_lines() -> dict[tuple[str, str, str], MoeLine]:
    """Measured grouped GEMMs by (kernels, engine, dtype)."""
    rows = TypeAdapter(tuple[MoeLine, ...]).validate_python(_load("kernels")["moe"])
    return {(row.kernels, row.engine, row.dtype): row for row in rows}


@functools.cache
def kernel_references() -> dict[str, KernelReference]:
    """The cards on which the kernels were measured, by the kernels' key."""
    rows = TypeAdapter(tuple[KernelReference, ...]).validate_python(_load("kernels")["reference"])
    return {row.kernels: row for row in rows}


@functools.cache
def weight_formats() -> dict[str, WeightFormat]:
    """Weight formats by name."""
    rows = TypeAdapter(tuple[WeightFormat, ...]).validate_python(_load("quantisation")["format"])
    return {row.name: row for row in rows}


@functools.cache
def kv_formats() -> dict[str, KvFormat]:
    """KV element formats by every alias."""
    rows = TypeAdapter(tuple[KvFormat, ...]).validate_python(_load("quantisation")["kv"])
    return {alias: row for row in rows for alias in row.aliases}


@functools.cache
def architectures() -> Architectures:
    """Which model classes are understood, and their special fields."""
    return Architectures.model_validate(_load("architectures"))


@functools.cache
def engine_map(engine: str) -> EngineMap | None:
    """The flags and memory rule of an engine; None for an engine without a table."""
    table = _load("engines").get(engine)
    return EngineMap.model_validate(table) if isinstance(table, dict) else None


@functools.cache
def priors() -> tuple[Prior, ...]:
    """Published effects of flags that no formula describes."""
    return TypeAdapter(tuple[Prior, ...]).validate_python(_load("engines")["prior"])


@functools.cache
def hazards() -> tuple[Hazard, ...]:
    """Flags that are published to have killed servers."""
    return TypeAdapter(tuple[Hazard, ...]).validate_python(_load("engines")["hazard"])


@functools.cache
def constants() -> dict[str, Fitted]:
    """The speed and memory model's constants by name."""
    return TypeAdapter(dict[str, Fitted]).validate_python(_load("constants"))


@functools.cache
def tile_rules() -> TileRules:
    """Shared-memory arithmetic of GEMM tiles."""
    return TileRules.model_validate(_load("tiles"))


def constant(name: str) -> float:
    """The value of one constant. Raises KeyError for a name that the table lacks."""
    return constants()[name].value
