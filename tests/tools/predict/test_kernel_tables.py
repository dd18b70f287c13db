"""The optional look-up in aiconfigurator-core's measured kernels."""

import json
import shutil
from pathlib import Path

import pytest
from fixtures.predict.shapes import LADDER, MODELS, model, sglang, sm120, vllm

from moeagent.tools.predict.comparison import compare
from moeagent.tools.predict.kernel_tables import table_times
from moeagent.tools.predict.machine import machine_from_name
from moeagent.tools.predict.predictor import predict
from moeagent.tools.predict.records import Unknown

QWEN = "Qwen3-235B-A22B"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(MODELS / f"{QWEN}.json", tmp_path / "config.json")
    return tmp_path


def test_a_folder_without_a_config_is_unknown(tmp_path):
    assert isinstance(table_times(tmp_path), Unknown)


@pytest.mark.part("kernels")
def test_both_sources_agree_within_their_doubt_and_say_which_they_are(folder):
    config, machine = vllm(tensor_parallel_size=8), machine_from_name("8x H200")
    load = LADDER.model_copy(update={"ladder": (1, 64)})
    source = table_times(folder)
    assert not isinstance(source, Unknown)
    lines = predict(config, machine, model(QWEN), load)
    looked_up = predict(config, machine, model(QWEN), load, times_of=source)
    for one, two in zip(lines.rungs, looked_up.rungs, strict=True):
        assert two.output_tok_s.value == pytest.approx(one.output_tok_s.value, rel=0.4)
    assert any("table look-up" in s for s in looked_up.sources)
    assert any("lines fitted" in s for s in lines.sources)


@pytest.mark.part("kernels")
def test_kernels_that_were_not_measured_are_said_so(tmp_path):
    shutil.copy(MODELS / "GLM-5.json", tmp_path / "config.json")
    answer = compare(
        sglang(tp=8, mem_fraction_static=0.92),
        None,
        sm120(),
        model("GLM-5.1-NVFP4"),
        LADDER,
        model_folder=tmp_path,
    )
    assert answer.first.looked_up is None
    assert "no measured kernels" in answer.first.not_looked_up


@pytest.mark.part("kernels")
def test_a_card_that_borrows_its_kernels_has_none_to_look_up(folder):
    answer = compare(
        vllm(tensor_parallel_size=8),
        None,
        machine_from_name("8x H20"),
        model(QWEN),
        LADDER,
        model_folder=folder,
    )
    assert "H20" in answer.first.not_looked_up
    assert json.loads(answer.model_dump_json())["first"]["prediction"]["rungs"]
