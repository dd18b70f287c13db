"""The archive on a host with nothing installed, by that host's own Python."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench.loadgen.scripted import ScriptedServer, completion, events

from moeagent.memory.errors import HostError
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.load import RandomPrompts, RungSpec, Target
from moeagent.tools.load.bundle import loadgen_archive
from moeagent.tools.load.on_host import run_rung_on_host

SPEC = RungSpec(concurrency=3, requests=9, output_len=6, random=RandomPrompts(words=5), warmup=None)
SYSTEM_PYTHON = "/usr/bin/python3" if shutil.which("/usr/bin/python3") else sys.executable


def test_a_rung_from_the_host_has_the_same_figures(tmp_path: Path) -> None:
    with ScriptedServer(lambda r: events(*completion(r.body["max_tokens"]))) as server:
        target = Target(base_url=server.url, api="openai-completions")
        outcome = run_rung_on_host(
            LocalHost(), target, SPEC, folder=str(tmp_path), tag="t/L1/load", python=SYSTEM_PYTHON
        )

    assert (outcome.rung.completed, outcome.rung.output_tokens) == (9, 54)
    assert list(tmp_path.iterdir()) == []


def test_a_host_without_python_says_so(tmp_path: Path) -> None:
    target = Target(base_url="http://127.0.0.1:1", api="openai-completions")

    with pytest.raises(HostError, match="measure from this machine"):
        run_rung_on_host(
            LocalHost(), target, SPEC, folder=str(tmp_path), tag="t/L1/load", python="python-of-no-host"
        )


def test_the_archive_needs_only_the_standard_library(tmp_path: Path) -> None:
    archive = tmp_path / "loadgen.pyz"
    archive.write_bytes(loadgen_archive())

    done = subprocess.run(
        [SYSTEM_PYTHON, "-I", "-S", str(archive)], input=b"{}", capture_output=True, timeout=60, check=False
    )

    assert b"ModuleNotFoundError" not in done.stderr
    assert b"KeyError" in done.stderr
