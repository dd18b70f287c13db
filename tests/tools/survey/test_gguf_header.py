"""The GGUF header reader over a real file, cut at every place."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeagent.tools.engines.tiny_moe import TinyMoe, write_tiny_moe
from moeagent.tools.survey.gguf_header import NotGguf, gguf_metadata
from moeagent.tools.survey.model import is_later_split, parse_listing, parse_model


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    pytest.importorskip("gguf")
    path = write_tiny_moe(tmp_path_factory.mktemp("gguf") / "m.gguf", TinyMoe(layers=1, experts=4))
    return path.read_bytes()[:20_000]


def test_the_architecture_keys(head: bytes) -> None:
    found = gguf_metadata(head)
    assert found["general.architecture"] == "qwen3moe"
    assert found["qwen3moe.expert_count"] == 4
    assert found["qwen3moe.block_count"] == 1
    assert "tokenizer.ggml.tokens" not in found


def test_a_head_that_ends_anywhere_gives_what_came_before(head: bytes) -> None:
    whole = gguf_metadata(head)
    for length in range(24, len(head), 997):
        part = gguf_metadata(head[:length])
        assert part.items() <= whole.items()


@given(data=st.binary(max_size=200))
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(NotGguf):
        gguf_metadata(b"X" + data)


@given(data=st.binary(max_size=200))
def test_a_hostile_header_ends(data: bytes) -> None:
    with contextlib.suppress(NotGguf):
        gguf_metadata(b"GGUF\x03\0\0\0" + b"\x01" + b"\0" * 7 + b"\xff" * 8 + data)


def test_equal_shapes_and_seeds_give_equal_files(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    shape = TinyMoe(layers=1, experts=2, experts_used=1)
    one = write_tiny_moe(tmp_path / "a.gguf", shape).read_bytes()
    assert one == write_tiny_moe(tmp_path / "b.gguf", shape).read_bytes()
    assert (
        one
        != write_tiny_moe(
            tmp_path / "c.gguf", TinyMoe(layers=1, experts=2, experts_used=1, seed=1)
        ).read_bytes()
    )
    assert list(tmp_path.glob("*.partial")) == []


def test_configuration_names_are_those_of_a_config_json(head: bytes) -> None:
    place = parse_model("/m.gguf", "file\n1073741824\n", "", "", "", head)
    assert place.facts.size_gib == 1.0
    assert place.facts.config["num_hidden_layers"] == 1
    assert place.facts.config["num_experts"] == 4
    assert place.facts.config["hidden_size"] == 256


def test_later_parts_of_a_split_model() -> None:
    assert is_later_split("/m/x-00002-of-00005.gguf")
    assert not is_later_split("/m/x-00001-of-00005.gguf")
    assert not is_later_split("/m/x.gguf")


def test_a_listing_with_links_and_odd_dates() -> None:
    text = (
        "-rw-r--r-- 1 0 0 10 Nov  1 10:00 ./a.safetensors\n"
        "lrwxrwxrwx 1 0 0 20 Nov  1  2025 ./b.safetensors\n"
        "total 5\n"
        "-rw-r--r-- 1 0 0 30 2025-11-01 10:00 ./c d.bin\n"
    )
    assert parse_listing(text) == {"a.safetensors": 10, "b.safetensors": 20, "d.bin": 30}
