"""The published table of CUTLASS tiles on SM120."""

import pytest

from moeagent.tools.predict.tiles import tile_fit, tile_table, triton_too_large

SM120 = 101_376
TWO = "fails at auto, fits with 2 stages"
NO = "does not fit"

# dtype, M, N, K, stage bytes, stages, bytes needed, verdict: physics section A.
PUBLISHED = [
    ("NVFP4", 128, 128, 128, 18432, 4, 87040, "fits"),
    ("NVFP4", 128, 128, 256, 36864, 2, 87040, "fits"),
    ("NVFP4", 64, 128, 256, 27648, 3, 96256, "fits"),
    ("NVFP4", 128, 256, 128, 27648, 3, 102400, TWO),
    ("NVFP4", 256, 128, 128, 27648, 3, 102400, TWO),
    ("NVFP4", 256, 256, 128, 36864, 2, 93184, "fits, but exceeds the registers"),
    ("NVFP4", 128, 256, 256, 55296, 1, 74752, NO),
    ("MXFP8", 128, 128, 128, 33792, 2, 80896, "fits"),
    ("MXFP8", 128, 64, 128, 25344, 3, 89344, "fits"),
    ("MXFP8", 128, 256, 128, 50688, 1, 70144, NO),
    ("MXFP8", 256, 128, 128, 50688, 1, 70144, NO),
    ("FP8", 128, 128, 128, 32768, 2, 78848, "fits"),
    ("FP8", 64, 128, 128, 24576, 3, 87040, "fits"),
    ("FP8", 128, 256, 128, 49152, 1, 68608, NO),
    ("BF16", 128, 128, 64, 32768, 2, 78848, "fits"),
    ("BF16", 64, 128, 64, 24576, 3, 87040, "fits"),
    ("BF16", 128, 256, 64, 49152, 1, 68608, NO),
    ("BF16", 128, 128, 32, 16384, 5, 95232, "fits"),
]


@pytest.mark.parametrize("row", PUBLISHED)
def test_each_tile(row):
    dtype, m, n, k, stage, stages, needed, verdict = row
    fit = tile_fit(dtype, m, n, k, SM120)
    assert (fit.stage_bytes, fit.auto_stages, fit.needed_bytes, fit.verdict) == (
        stage,
        stages,
        needed,
        verdict,
    )


def test_the_table_offers_exactly_these():
    assert [(t.dtype, t.m, t.n, t.k) for t in tile_table(SM120)] == [row[:4] for row in PUBLISHED]
    assert {t.dtype for t in tile_table(SM120, "NVFP4")} == {"NVFP4"}


def test_triton_defaults():
    assert len(triton_too_large(SM120)) == 2
    assert triton_too_large(232_448) == ()
