"""The command as a user calls it: its output, its JSON, its exit status."""

import json
import os
import subprocess
import sys

import pytest
from bench.diagnosis.scoring import FIXTURES

REAL = FIXTURES / "real_logs"
KEYS = {
    "class", "confidence", "root_line", "line_no", "stage", "ranks", "symptoms", "alternatives", "remedies",
    "healthy", "explanation",
}  # fmt: skip


def moeagent(*words, stdin=b""):
    return subprocess.run(
        [sys.executable, "-m", "moeagent.agent", "diagnose", *map(str, words)],
        input=stdin,
        capture_output=True,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
    )


def test_json_has_the_promised_keys():
    done = moeagent(REAL / "vllm-fail-kv-too-small.log", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert set(answer) == KEYS
    assert answer["class"] == "oom.kv_pool.startup"
    assert set(answer["remedies"][0]) == {"target", "direction", "change", "why", "source"}
    assert set(answer["symptoms"][0]) == {"line_no", "line", "reason"}


def test_a_healthy_log_is_an_answer():
    done = moeagent(REAL / "llama-healthy.log", "--json", "--engine", "llamacpp")
    assert done.returncode == 0
    assert json.loads(done.stdout)["healthy"] is True


def test_standard_input_and_the_panel_for_people():
    data = (REAL / "llama-fail-unknown-arch.log").read_bytes()
    done = moeagent("-", stdin=data)
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert "model.unsupported_arch" in shown
    assert "unknown model architecture: 'qwen9moe'" in shown


def test_hostile_text_is_shown_as_text():
    log = b"2026-01-01 10:00:00 ERROR No space left on device [bold]x[/bold] [/usr/lib] \x1b[2J\n"
    done = moeagent("-", stdin=log)
    assert done.returncode == 0
    assert "[bold]x[/bold] [/usr/lib]" in done.stdout.decode()
    assert b"\x1b[2J" not in done.stdout


def test_on_a_host():
    done = moeagent(REAL / "vllm-fail-tp-indivisible.log", "--host", "local", "--json")
    assert json.loads(done.stdout)["class"] == "config.incompatible"


def test_explain_and_own_signatures(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        '[[signature]]\nid = "attic"\nkind = "cause"\nclass = "host.disk_full"\npattern = "attic full"\n'
        'means = "ours"\nsource = "us"\n'
    )
    assert b"out of resource: shared memory" in moeagent("--explain", "triton-shared-memory").stdout
    assert b"attic full" in moeagent("--explain", "attic", "--signatures", own).stdout
    done = moeagent("-", "--json", "--signatures", own, stdin=b"2026-01-01 10:00:00 attic full\n")
    assert json.loads(done.stdout)["class"] == "host.disk_full"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/"], b"directory"),
        (["/no/such.log"], b"no such file"),
        ([os.devnull], b"empty"),
        ([sys.executable], b"not a"),
        (["--explain", "nothing"], b"nearest"),
        (["x.log", "--stage", "brewing"], b"stage"),
    ],
)
def test_bad_input_is_one_clear_message(words, said):
    done = moeagent(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2
