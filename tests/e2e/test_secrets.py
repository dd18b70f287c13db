"""Planted secrets: a scan over everything that a run wrote and printed finds none of them."""

import gzip
import signal
import sys
from pathlib import Path

import pytest
from e2e.command import moeagent, start, tape_lines, wait_for
from e2e.test_chaos import SETTINGS

from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import find_tagged, reap
from moeagent.tools.llm.scripted import Raw, ScriptedEndpoint

KEY = "sk-planted-model-key-0123456789"
TOKEN = "hf_plantedHubToken0123456789"
PROXY = "http://somebody:planted-password@proxy.invalid:3128"
PLANTED = (KEY, TOKEN, "planted-password")
GIVEN = {"OPENAI_API_KEY": KEY, "HF_TOKEN": TOKEN, "PLANTED_PROXY": PROXY}
SHOWING = (
    ("log", "planted"), ("log", "planted", "--json"), ("report", "planted"),
    ("report", "planted", "--html", "runs/findings.html"), ("status", "planted"), ("runs",),
    ("prompt", "--run", "planted"), ("prompt", "--run", "planted", "--json"), ("findings",),
    ("export", "planted", "-o", "runs/export.sh"), ("export", "planted", "--json"),
    ("replay", "planted"), ("doctor", "planted"),
)  # fmt: skip
"""Every command that shows a run."""


def leaks(written: dict[str, bytes]) -> list[tuple[str, str]]:
    return [
        (where, secret) for where, data in written.items() for secret in PLANTED if secret.encode() in data
    ]


def files(folder: Path) -> dict[str, bytes]:
    """What lies in the runs' folder, unpacked."""
    found = {}
    for path in (folder / "runs").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found[str(path)] = gzip.decompress(data) if path.suffix == ".gz" else data
    return found


def test_nothing_that_a_run_wrote_or_printed_holds_a_secret(tmp_path: Path) -> None:
    """The engine prints its environment as it starts, and the model's endpoint repeats the key."""
    (tmp_path / "moeagent.toml").write_text(SETTINGS + telling_engine(tmp_path))
    echoed = Raw(status=401, body=f'{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}')
    with ScriptedEndpoint(["no JSON at all", echoed]) as endpoint:
        done = moeagent(tmp_path, "run", "--run-id", "planted", "--llm", endpoint.base_url, **GIVEN)
        assert endpoint.requests, "the model was never asked, so its key was never used"
    shown = {"run": done.stdout + done.stderr}
    for name, *options in SHOWING:
        told = moeagent(tmp_path, name, *options)
        shown[" ".join([name, *options])] = told.stdout + told.stderr
    written = files(tmp_path)
    names = {Path(path).name for path in written}
    assert {"tape.jsonl", "findings.db", "report.html", "export.sh"} <= names
    assert any(b"Incorrect API key provided: ***" in data for data in written.values())
    logs = [data for path, data in written.items() if "/logs/" in path]
    assert any(b"telling my environment" in log and b"HF_TOKEN=***" in log for log in logs)
    assert leaks({**written, **{name: text.encode() for name, text in shown.items()}}) == []


def telling_engine(folder: Path) -> str:
    """Settings for a simulated engine that prints its environment when it is launched."""
    python = folder / "python3"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--port*) echo telling my environment; env; echo end of it ;; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    return f'[engine]\ncommand = ["{python}", "-m", "sglang.launch_server"]\n'


def test_the_traceback_of_a_crash_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "moeagent.toml").write_text(SETTINGS)
    process = start(tmp_path, "run", "--run-id", "crashed", PYTHONFAULTHANDLER="1", **GIVEN)
    wait_for(lambda: len(tape_lines(tmp_path, "crashed")) > 6, "a launch")
    process.send_signal(signal.SIGABRT)
    told, _ = process.communicate(timeout=60)
    try:
        assert "Fatal Python error: Aborted" in told
        assert leaks({**files(tmp_path), "traceback": told.encode()}) == []
    finally:
        reap(LocalHost(), find_tagged(LocalHost(), "crashed/"), grace_s=0)


@pytest.mark.parametrize(
    "options",
    [
        ("--env", f"HF_TOKEN={TOKEN}"),
        ("--flag", f"--api-key {KEY}"),
        ("--env", f"HTTPS_PROXY={PROXY}"),
        ("--llm", "http://somebody:planted-password@127.0.0.1:9/v1"),
    ],
)
def test_a_secret_among_the_options_is_refused_before_anything_is_written(
    tmp_path: Path, options: tuple[str, str]
) -> None:
    refused = moeagent(tmp_path, "run", "--host", "sim", "--run-id", "planted", *options, code=2)
    assert "settings are kept with the run" in refused.stderr
    assert files(tmp_path) == {}
    assert leaks({"stdout": refused.stdout.encode(), "stderr": refused.stderr.encode()}) == []


def test_what_a_run_writes_is_private(tmp_path: Path) -> None:
    (tmp_path / "moeagent.toml").write_text(SETTINGS)
    moeagent(tmp_path, "run", "--run-id", "modes", "--limit", "launches=1")
    for path in (tmp_path / "runs" / "modes").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, f"{path} can be read by others"
