"""SGLang: launch command, readiness, flags, effective settings, memory lines."""

import re
from collections.abc import Mapping
from typing import Any

from moeagent.memory.records import EngineFacts, ServerConfig
from moeagent.tools.engines.effective import by_flag
from moeagent.tools.engines.key_values import bracketed, key_values
from moeagent.tools.engines.log_lines import adjusted_settings, memory_numbers
from moeagent.tools.engines.probing import python_facts, python_probes
from moeagent.tools.engines.protocol import EngineInstall, LoadApi, Probe, ReadySpec, StageSpec
from moeagent.tools.engines.render import launch
from moeagent.tools.hosts.protocol import Command, CommandResult

DEFAULT_COMMAND = ("python3", "-m", "sglang.launch_server")

READY = ReadySpec(
    health_paths=("/health_generate", "/health"),
    ready_log=r"The server is fired up and ready to roll!",
    stages=(
        StageSpec(name="load", pattern=r"server_args=|Init torch distributed begin", stall_s=900),
        StageSpec(name="kv_pool", pattern=r"Load weight end\.", stall_s=300),
        StageSpec(
            name="graph_capture",
            pattern=r"Capture .*(?:cuda|CUDA) graph begin|Capturing batches|Running FlashInfer autotune",
            stall_s=900,
        ),
        StageSpec(name="warmup", pattern=r"Application startup complete|Uvicorn running on", stall_s=660),
        StageSpec(name="serving", pattern=r"The server is fired up and ready to roll!", stall_s=600),
    ),
)
"""Stall times: loading from slow disks prints nothing per shard for minutes; capture compiles kernels; the
warm-up request has a time-out of 600 s in the engine itself (http_server.py)."""

LOAD = LoadApi(
    api="openai-completions",
    flush_path="/flush_cache",
    info_path="/get_server_info",
    ignore_eos_body={"ignore_eos": True},
)


class SglangEngine:
    """The Engine protocol for SGLang."""

    name = "sglang"
    ready = READY
    load = LOAD

    def command(self, config: ServerConfig, *, model: str, port: int, install: EngineInstall) -> Command:
        """`python3 -m sglang.launch_server --model-path M --host 127.0.0.1 --port P ...`."""
        own = ["--model-path", model, "--host", "127.0.0.1", "--port", str(port)]
        return launch(config, install, DEFAULT_COMMAND, own)

    def probes(self, install: EngineInstall) -> tuple[Probe, ...]:
        """Its parser, read by its own Python."""
        return python_probes(self.name, install, DEFAULT_COMMAND)

    def facts(self, results: Mapping[str, CommandResult], install: EngineInstall) -> EngineFacts:
        """Version and flags."""
        return python_facts(self.name, results, install)

    def effective(self, server_info: Mapping[str, Any] | None, log_text: str) -> dict[str, Any]:
        """The server_args line, then the endpoint's answer, then what the log says was adjusted."""
        settings = by_flag(self.name, server_args(log_text))
        if server_info:
            settings |= by_flag(self.name, {k: v for k, v in server_info.items() if k != "internal_states"})
        adjusted = adjusted_settings(self.name, log_text)
        return settings | {flag: value for flag, value in adjusted.items() if value is not None}

    def memory(self, log_text: str) -> dict[str, float]:
        """The engine's GB are GiB."""
        return memory_numbers(self.name, log_text)


def server_args(log_text: str) -> dict[str, Any]:
    """The settings of the `server_args=ServerArgs(...)` line, or of its dict form since 0.5.20."""
    found = re.search(r"server_args=(?:ServerArgs)?(?=[({])", log_text)
    return key_values(bracketed(log_text, found.end())) if found else {}
