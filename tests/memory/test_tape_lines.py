"""Lines of a tape are told apart before they are parsed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeagent.memory.records import canonical_json
from moeagent.memory.tape.lines import FIRST_SUM, EntryType, checksum, decode, encode

TYPES: tuple[EntryType, ...] = ("header", "request", "response", "decision", "marker")
BAIT = st.sampled_from(
    ["type", "decision", "kind", "value", '","type":"request"}', '{"kind":"x",', "H1", "é"]
)
TEXT = BAIT | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUE = st.recursive(
    st.none() | st.integers() | TEXT, lambda inner: st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)


def read(type_: EntryType, body: dict[str, Any]) -> Any:
    _, line = encode(FIRST_SUM, type_, body)
    return decode(line.rstrip(b"\n"), 1, FIRST_SUM)


@given(type_=st.sampled_from(TYPES), kind=TEXT, value=VALUE)
def test_type_kind_and_body_are_those_that_were_written(type_: EntryType, kind: str, value: Any) -> None:
    body = {"kind": kind, {"request": "request", "decision": "value"}.get(type_, "other"): value}
    entry = read(type_, body)
    assert entry.type == type_
    assert entry.kind == (kind if type_ in ("request", "decision") else "")
    assert entry.body == body


def test_json_in_another_spelling_is_read_as_well() -> None:
    text = json.dumps({"value": {}, "type": "decision", "kind": "note"}).encode()
    entry = decode(checksum(FIRST_SUM, text).encode() + b" " + text, 1, FIRST_SUM)
    assert (entry.type, entry.kind, entry.body) == ("decision", "note", {"kind": "note", "value": {}})


@pytest.mark.parametrize("owner", ["H2", None])
def test_what_a_line_surely_does_not_hold_is_told_without_parsing(owner: str | None) -> None:
    bait = canonical_json({"hypothesis": "H9"})
    entry = read("decision", {"kind": "launch", "value": {"hypothesis": owner, "log": bait, "id": "H3"}})
    assert entry.may_hold("hypothesis", {owner})
    assert not entry.may_hold("hypothesis", {"H3", "H9"})
