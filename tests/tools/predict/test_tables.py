"""Every table loads, names its sources, and refers to what exists."""

import csv

import pytest
from fixtures.predict.shapes import MODELS

from moeagent.tools.predict import tables
from moeagent.tools.predict.settings import EngineSettings

ROWS = {r["id"] for r in csv.DictReader((MODELS.parent / "measurements.csv").read_text().splitlines())}


def test_every_gpu_has_kernels_fabric_and_source():
    for gpu in tables.gpus():
        assert gpu.source
        assert gpu.fabric in tables.fabrics(), gpu.name
        assert gpu.kernels in tables.kernel_references(), gpu.name
        assert (gpu.kernels, "bfloat16") in tables.gemm_lines(), gpu.name
        assert tables.constant(f"small_kernel_us_{gpu.sm.split('.')[0]}") > 0


def test_fabric_columns_are_as_long_as_their_sizes_and_grow_at_the_end():
    for fabric in tables.fabrics().values():
        for values in fabric.allreduce_us.values():
            assert len(values) == len(fabric.bytes), fabric.name
            assert values[-1] > values[0], fabric.name


@pytest.mark.parametrize("engine", ["sglang", "vllm", "llamacpp"])
def test_flags_set_fields_that_exist(engine):
    found = tables.engine_map(engine)
    assert found is not None
    for flag in found.flags:
        assert bool(flag.field) != bool(flag.json_fields), flag.names
        for field in (flag.field, *flag.json_fields.values()):
            assert field is None or field in EngineSettings.model_fields
    assert all(entry.source for entry in found.no_effect)


def test_an_engine_without_a_table_is_none():
    assert tables.engine_map("tensorrt") is None
    assert tables.engine_map("prior") is None


def test_constants_say_where_they_come_from_and_name_real_rows():
    for name, constant in tables.constants().items():
        assert constant.source, name
        assert constant.unit, name
        assert set(constant.rows) <= ROWS, name


def test_published_effects_and_hazards_have_sources():
    for prior in tables.priors():
        assert prior.source
        assert set(prior.rows) <= ROWS
        assert all(p.low <= p.effect <= p.high for p in prior.points), prior.flag
    assert all(hazard.source and hazard.why for hazard in tables.hazards())


def test_formats_and_their_kernels_exist():
    dtypes = {dtype for _, _, dtype in tables.moe_lines()}
    for weight in tables.weight_formats().values():
        assert set(weight.kernels) & dtypes, weight.name
    assert tables.kv_formats()["fp8_e4m3"].bytes == 1
