"""A real vLLM: its parser, a start with random weights, a generation, its log."""

import json
import urllib.request
from pathlib import Path

import pytest
from parts.llamacpp import free_port
from parts.vllm import ENVIRONMENT, PROGRAM, write_model

from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.probing import read_knobs
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.validate import validate_config
from moeagent.tools.engines.vllm import VllmEngine
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.server.lifecycle import start_server, stop_server
from moeagent.tools.server.readiness import wait_until_ready

pytestmark = [pytest.mark.slow, pytest.mark.part("vllm"), pytest.mark.timeout(600)]


def test_start_generate_stop(tmp_path: Path) -> None:
    model, engine = write_model(tmp_path / "model"), VllmEngine()
    install = EngineInstall(command=(str(PROGRAM), "serve"), env=ENVIRONMENT)
    facts = read_knobs(LocalHost(), install, engine)
    assert facts.source == "parser"
    config = ServerConfig(
        engine="vllm",
        flags={
            "--dtype": "float32",
            "--max-model-len": 512,
            "--max-num-seqs": 8,
            "--load-format": "dummy",
            "--enforce-eager": True,
        },
    )
    assert validate_config(config, facts) == ()
    port, host = free_port(), LocalHost()
    command = engine.command(config, model=str(model), port=port, install=install)
    handle = start_server(host, command, run="test", launch="L1", folder=str(tmp_path / "server"), port=port)
    try:
        report = wait_until_ready(host, handle, engine.ready, limit_s=480)
        assert report.outcome == "ready", report
        body = {"prompt": [5, 6, 7, 8], "max_tokens": 6, **engine.load.ignore_eos_body}
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["usage"]["completion_tokens"] == 6
    finally:
        assert stop_server(host, handle, grace_s=60).clean
    text = host.read(handle.log).decode()
    assert engine.effective(None, text)["--max-num-seqs"] == 8
    assert engine.memory(text)["kv_tokens"] > 0
