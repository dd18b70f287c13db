"""A campaign whose user has a check of the answers: a real command that asks the running server."""

import sys
from pathlib import Path

from e2e.command import kinds, moeagent, moeagent_json
from e2e.small_run import SMALL, settings

CHECK = """
import json, os, sys, urllib.request

base = os.environ["MOEAGENT_BASE_URL"]
body = json.dumps({"model": os.environ["MOEAGENT_MODEL"], "prompt": "1 + 1 =", "max_tokens": 4}).encode()
asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/completions", body)
asked.add_header("Content-Type", "application/json")
answer = json.load(urllib.request.urlopen(asked))["choices"][0]["text"]
info = json.load(urllib.request.urlopen(base + "/get_server_info"))
print(json.dumps({"score": float(bool(answer))}))
if info["cuda_graph_max_bs"] == 24:
    sys.exit("answers went wrong")
"""
IDEA = """
[[idea]]
statement = "Smaller graphs"
[idea.flags]
"--cuda-graph-max-bs" = 24
"""


def campaign(folder: Path, check: str) -> None:
    script = folder / "check.py"
    script.write_text(check)
    command = f"command = ['{sys.executable}', '{script}']"
    text = SMALL.replace("[limits]", "[limits]\nprove_each_step = false")
    settings(folder, text.replace("[output_check]", f"[output_check]\n{command}") + IDEA)


def test_what_fails_the_users_check_is_regressed_with_its_words(tmp_path: Path) -> None:
    campaign(tmp_path, CHECK)
    limits = ("--limit", "experiments=1", "--limit", "launches=4")
    moeagent(tmp_path, "run", "--run-id", "checked", *limits)

    log = moeagent_json(tmp_path, "log", "checked")
    notes = [note["text"] for note in log["notes"] if "task check" in note["text"]]
    assert notes[0] == "the task check passed, score 1"
    assert kinds(tmp_path, "checked").count("task") == 2, "once for each configuration"
    (idea,) = log["hypotheses"]
    assert idea["verdict"]["kind"] == "regressed"
    assert idea["verdict"]["reason"].endswith("score 1 (baseline 1): answers went wrong")
    moeagent(tmp_path, "replay", "checked")
    assert moeagent_json(tmp_path, "replay", "checked", "--rethink")["counts"]["differs"] == 0


def test_a_check_that_the_baseline_fails_ends_the_run_with_the_check_to_blame(tmp_path: Path) -> None:
    campaign(tmp_path, "import sys; sys.exit('no such module')")
    done = moeagent(tmp_path, "run", "--run-id", "blamed", code=2)

    assert "the baseline fails your own check" in done.stderr
    assert "no such module" in done.stderr
