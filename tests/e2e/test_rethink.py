"""Every recorded decision made again: same program, other data, other version, altered course, damage."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from e2e.command import moeagent, moeagent_json
from parts.made_run import write_run

from moeagent.memory.run_folder import RunFolder
from moeagent.memory.tape.lines import Entry, Json
from moeagent.memory.tape.tape import Writer

OWN_SIGNATURE = """
[[signature]]
id = "own.died"
engine = ["any"]
kind = "cause"
class = "host.driver_mismatch"
pattern = "{words}"
means = "the switch was rebooted"
weight = 100
source = "our own runbook"
"""


def rewritten(finished: Path, folder: Path, change: Callable[[Entry], Json | None]) -> Path:
    """A copy of the finished run whose lines have other bodies or are left out, with sums that are right."""
    shutil.copytree(finished / "runs" / "done", folder / "runs" / "done")
    tape = RunFolder(folder / "runs" / "done").tape
    entries = RunFolder(finished / "runs" / "done").read_tape().entries
    tape.unlink()
    writer = Writer.create(tape)
    for entry in entries:
        body = change(entry)
        if body is not None:
            writer.append(entry.type, body)
    writer.close()
    return folder


def differing(told: Any) -> list[dict[str, Any]]:
    return [d for d in told["decisions"] if d["outcome"] == "differs"]


def of_kind(finished: Path, kind: str) -> Json:
    """The first recorded decision of this kind."""
    entries = RunFolder(finished / "runs" / "done").read_tape().entries
    return next(e.body["value"] for e in entries if e.type == "decision" and e.body["kind"] == kind)


def test_the_same_program_decides_the_same(finished: Path) -> None:
    told = moeagent_json(finished, "replay", "done", "--rethink")
    assert differing(told) == []
    assert told["counts"]["same"] > 12
    kinds = {d["kind"] for d in told["decisions"] if d["outcome"] == "same"}
    assert kinds >= {"facts", "incumbent", "limit", "hypothesis", "launch", "verdict", "conclusion"}
    assert {d["kind"] for d in told["decisions"] if d["outcome"] == "not decided here"} <= {"note"}
    assert "0 differs" in moeagent(finished, "replay", "done", "--rethink").stdout


def test_signatures_of_ones_own_show_which_diagnoses_would_change(finished: Path, tmp_path: Path) -> None:
    failed = next(
        e.body["value"]
        for e in RunFolder(finished / "runs" / "done").read_tape().entries
        if e.type == "decision" and e.body["kind"] == "launch" and e.body["value"]["diagnosis"]
    )
    signatures = tmp_path / "own.toml"
    words = failed["diagnosis"]["root_line"].split()[-1].strip("'\"().:,")
    signatures.write_text(OWN_SIGNATURE.format(words=words))
    told = moeagent_json(finished, "replay", "done", "--rethink", "--signatures", str(signatures))
    first = differing(told)[0]
    assert (first["kind"], first["about"]) == ("launch", failed["id"])
    changed = {c["field"]: (c["recorded"], c["now"]) for c in first["changes"]}
    assert changed["diagnosis.class"] == (failed["diagnosis"]["class"], "host.driver_mismatch")


def test_a_tape_of_another_version_and_other_data_is_rethought_all_the_same(
    finished: Path, tmp_path: Path
) -> None:
    def older(entry: Entry) -> Json:
        if entry.type != "header":
            return entry.body
        settings = {**entry.body["settings"], "given_up_setting": 1}
        settings["limits"] = {**settings["limits"], "given_up_limit": 2}
        return {**entry.body, "loop": 0, "moeagent": "0.0.1", "data": {}, "settings": settings}

    rewritten(finished, tmp_path, older)
    moeagent(tmp_path, "replay", "done", code=8)
    told = moeagent_json(tmp_path, "replay", "done", "--rethink")
    assert (told["loop"], told["moeagent"]) == (0, "0.0.1")
    assert differing(told) == []


def test_an_altered_verdict_is_found_and_the_rest_is_judged_on_it(finished: Path, tmp_path: Path) -> None:
    recorded = of_kind(finished, "verdict")

    def refuted(entry: Entry) -> Json:
        if entry.body.get("value") != recorded:
            return entry.body
        return {**entry.body, "value": {**recorded, "kind": "invalid"}}

    found = differing(moeagent_json(rewritten(finished, tmp_path, refuted), "replay", "done", "--rethink"))
    verdict = next(d for d in found if d["kind"] == "verdict")
    assert verdict["about"] == recorded["hypothesis"]
    assert verdict["changes"] == [{"field": "kind", "recorded": "invalid", "now": recorded["kind"]}]


@pytest.mark.parametrize("kind", ["pivot", "verdict"])
def test_a_decision_that_the_recording_lacks_is_reported(finished: Path, tmp_path: Path, kind: str) -> None:
    left_out = of_kind(finished, kind)
    folder = rewritten(finished, tmp_path, lambda e: None if e.body.get("value") == left_out else e.body)
    found = differing(moeagent_json(folder, "replay", "done", "--rethink"))
    lacking = next(d for d in found if d["changes"][0]["recorded"] is None)
    assert (lacking["kind"], lacking["about"]) == (kind, left_out["hypothesis"])
    assert "no such decision" in moeagent(folder, "replay", "done", "--rethink").stdout


def test_a_tape_without_the_worlds_answers_says_what_cannot_be_decided(tmp_path: Path) -> None:
    write_run(tmp_path / "runs")
    told = moeagent_json(tmp_path, "replay", "made", "--rethink")
    reasons = {d["why"] for d in told["decisions"] if d["kind"] == "verdict"}
    assert reasons == {"the tape holds no survey"}
    assert [d for d in told["decisions"] if d["kind"] == "launch" and d["outcome"] == "differs"]


def test_damage_is_damage_in_either_mode_and_signatures_go_with_rethink(
    finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished / "runs" / "done", tmp_path / "runs" / "done")
    tape = tmp_path / "runs" / "done" / "tape.jsonl"
    tape.write_text(tape.read_text().replace("hypothesis", "hypothesus", 1))
    assert "checksum" in moeagent(tmp_path, "replay", "done", "--rethink", code=6).stderr
    assert "--rethink" in moeagent(tmp_path, "replay", "done", "--signatures", "x.toml", code=2).stderr
