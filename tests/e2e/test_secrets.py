"""Planted secrets: a scan over everything that a run wrote and printed finds none of them."""

import gzip
from pathlib import Path

import pytest
from e2e.command import moeagent
from e2e.test_chaos import SETTINGS

from moeagent.tools.llm.scripted import ScriptedEndpoint

KEY = "sk-planted-model-key-0123456789"
TOKEN = "hf_plantedHubToken0123456789"
PROXY = "http://somebody:planted-password@proxy.invalid:3128"
PLANTED = (KEY, TOKEN, "planted-password")


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
    (tmp_path / "moeagent.toml").write_text(SETTINGS)
    with ScriptedEndpoint(['{"ready": true}', "no JSON at all"]) as endpoint:
        given = {"OPENAI_API_KEY": KEY, "HF_TOKEN": TOKEN, "PLANTED_PROXY": PROXY}
        done = moeagent(tmp_path, "run", "--run-id", "planted", "--llm", endpoint.base_url, **given)
        assert endpoint.requests, "the model was never asked, so its key was never used"
    written = files(tmp_path)
    assert {"tape.jsonl", "findings.db"} <= {Path(path).name for path in written}
    shown = {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    for name, *options in (("log",), ("log", "--json"), ("report",)):
        shown[name] = moeagent(tmp_path, name, "planted", *options).stdout.encode()
    assert leaks({**written, **shown}) == []


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
