"""The arithmetic below a step: experts hit, grouped GEMMs, all-reduces."""

import pytest
from fixtures.predict.shapes import model, settings, sglang, sm120
from hypothesis import given
from hypothesis import strategies as st

from moeagent.tools.predict import tables
from moeagent.tools.predict.collectives import allreduce_us, fabric_in_use, gather_us
from moeagent.tools.predict.kernels import busiest_experts, distinct_experts, gemm_us, moe_us, ridge_rows
from moeagent.tools.predict.machine import machine_from_name

FABRICS = sorted(tables.fabrics())


@pytest.mark.parametrize(("tokens", "hit"), [(1, 8), (8, 57), (32, 163), (64, 222), (128, 252)])
def test_distinct_experts_of_glm5(tokens, hit):
    assert distinct_experts(256, 8, tokens) == pytest.approx(hit, abs=0.8)


@pytest.mark.parametrize(("tokens", "hit"), [(8, 59), (64, 284), (128, 358)])
def test_distinct_experts_of_kimi(tokens, hit):
    assert distinct_experts(384, 8, tokens) == pytest.approx(hit, abs=1.5)


def test_the_busiest_rank():
    assert busiest_experts(256, 8, 1, 8) == pytest.approx(2.56, abs=0.1)
    assert busiest_experts(256, 8, 10_000, 8) == pytest.approx(32)
    assert busiest_experts(256, 8, 10, 1) == distinct_experts(256, 8, 10)


@given(st.integers(1, 4096), st.sampled_from([1, 2, 4, 8]))
def test_no_rank_reads_more_experts_than_it_has(tokens, ep):
    assert 0 < busiest_experts(256, 8, tokens, ep) <= 256 / ep + 1e-9


# From the smallest measured message on; tables of real machines scatter by 2 %.
@given(st.sampled_from(FABRICS), st.floats(1024, 2**31), st.sampled_from([2, 3, 4, 6, 8]))
def test_an_all_reduce_takes_time_and_a_much_larger_one_takes_more(name, size, gpus):
    fabric = tables.fabrics()[name]
    assert 0 < allreduce_us(fabric, size, gpus) <= allreduce_us(fabric, size * 64, gpus) * 1.03


def test_all_reduce_table_values_and_single_gpus():
    fabric = tables.fabrics()["pcie5"]
    assert allreduce_us(fabric, 65536, 8) == pytest.approx(34.2)
    assert allreduce_us(fabric, 65536, 1) == 0
    assert gather_us(fabric, 65536, 8) == pytest.approx(17.1)
    assert allreduce_us(fabric, 65536, 4) < allreduce_us(fabric, 65536, 6) < allreduce_us(fabric, 65536, 8)


def test_fabric_variants():
    pcie, nvlink = sm120(), machine_from_name("8x H200")
    assert fabric_in_use(pcie, settings(sglang())).name == "pcie5"
    assert fabric_in_use(nvlink, settings(sglang(disable_custom_all_reduce=True))).name == "nvlink4-nccl"


def test_the_nvfp4_line_is_near_the_tables_that_it_sums_up():
    """aiconfigurator-core, GLM-5 shape under TP8 on RTX PRO 6000, vLLM: 541 us at 128 tokens, 77 at 1."""
    spec, shape = sm120().spec, model("GLM-5.1-NVFP4")
    assert spec is not None
    from fixtures.predict.shapes import vllm

    layout = settings(vllm(tensor_parallel_size=8))
    assert moe_us(spec, shape, layout, "nvfp4", 128) == pytest.approx(541, rel=0.2)
    assert moe_us(spec, shape, layout, "nvfp4", 1) == pytest.approx(77, rel=0.3)
    assert moe_us(spec, shape, layout, "nvfp4", 0) == 0


def test_a_borrowed_card_is_scaled_by_its_bandwidth():
    h200, h20 = machine_from_name("H200").spec, machine_from_name("H20").spec
    assert h200 is not None
    assert h20 is not None
    big = 3e8
    assert gemm_us(h20, "bfloat16", big, 1, calls=1, width=0) > 1.1 * gemm_us(
        h200, "bfloat16", big, 1, calls=1, width=0
    )


def test_ridge_point_of_fp4_on_sm120():
    spec = sm120().spec
    assert spec is not None
    assert ridge_rows(spec, "nvfp4") == pytest.approx(265, rel=0.15)
