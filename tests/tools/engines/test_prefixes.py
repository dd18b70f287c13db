"""Launch prefixes: the engine is asked and started through them, and what arrived is read back."""

import sys
import time
import venv
from pathlib import Path

import pytest
from parts.python_engine import installed

from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.effective import from_command_line
from moeagent.tools.engines.probing import read_knobs
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.sglang import SglangEngine
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.processes import ProcessSpec, start_detached, stop

PYTHON = (sys.executable, "-m", "sglang.launch_server")
CONDA = '#!/bin/sh\n[ "$1 $2 $3" = "run --no-capture-output -n" ] && shift 4 && CONDA_DEFAULT_ENV=x "$@"\n'
"""What `conda run` does as far as a launch prefix is concerned: a child in another environment."""


def prefixes(folder: Path) -> dict[str, tuple[str, ...]]:
    conda = folder / "conda"
    conda.write_text(CONDA)
    conda.chmod(0o755)
    venv.create(folder / "venv", symlinks=True, with_pip=False)
    return {
        "env": ("env", "OMP_NUM_THREADS=1", *PYTHON),
        "nice": ("nice", "-n", "3", *PYTHON),
        "taskset": ("taskset", "-c", "0", *PYTHON),
        "numactl": ("numactl", "--cpunodebind=0", "--membind=0", "--", *PYTHON),
        "conda": (str(conda), "run", "--no-capture-output", "-n", "x", *PYTHON),
        "venv": (str(folder / "venv/bin/python"), "-m", "sglang.launch_server"),
    }


@pytest.mark.parametrize(
    "name",
    ["env", "nice", "taskset", pytest.param("numactl", marks=pytest.mark.part("numactl")), "conda", "venv"],
)
def test_the_engine_is_asked_started_and_read_back_through_a_prefix(tmp_path: Path, name: str) -> None:
    plain = installed(tmp_path / "site", "0.5.9", "--own-flag")
    install = EngineInstall(command=prefixes(tmp_path)[name], env=plain.env)
    host, engine = LocalHost("gpu1"), SglangEngine()
    facts = read_knobs(host, install, engine)
    assert (facts.version, facts.source) == ("0.5.9", "parser")
    assert facts.knob("--own-flag") is not None
    config = ServerConfig(engine="sglang", flags={"--tp-size": 2, "--own-flag": 7})
    command = engine.command(config, model="/m", port=21000, install=install)
    process = start_detached(host, ProcessSpec(command, str(tmp_path / "L1"), f"prefix/{name}"))
    try:
        deadline = time.monotonic() + 60
        while b"started" not in host.read(process.log):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        words = host.read(f"/proc/{process.pid}/cmdline").decode().split("\0")[:-1]
        assert from_command_line("sglang", words) == config.flags
    finally:
        assert stop(host, process, grace_s=5).gone
