"""vLLM: launch command, readiness, flags, effective settings, memory lines."""

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

DEFAULT_COMMAND = ("vllm", "serve")

READY = ReadySpec(
    health_paths=("/health",),
    ready_log=r"Application startup complete",
    stages=(
        StageSpec(
            name="load",
            pattern=r"vLLM API server version|non-default args|Starting to load model",
            stall_s=900,
        ),
        StageSpec(name="kv_pool", pattern=r"(?:Model loading|Initializing model) took", stall_s=900),
        StageSpec(name="graph_capture", pattern=r"Capturing CUDA graphs|KV cache size", stall_s=600),
        StageSpec(name="warmup", pattern=r"init engine \(profile|Starting vLLM", stall_s=300),
        StageSpec(name="serving", pattern=r"Application startup complete", stall_s=600),
    ),
)
"""Stall times: weights load and torch.compile run for minutes without a line (43 s of compile on one H200
with a 30 B model, several minutes for large ones); the front end itself waits 600 s for the engine."""

LOAD = LoadApi(
    api="openai-completions",
    flush_path=None,  # /reset_prefix_cache exists under VLLM_SERVER_DEV_MODE only; prompts are unique anyway
    info_path=None,
    ignore_eos_body={"ignore_eos": True},
)


class VllmEngine:
    """The Engine protocol for vLLM."""

    name = "vllm"
    ready = READY
    load = LOAD

    def command(self, config: ServerConfig, *, model: str, port: int, install: EngineInstall) -> Command:
        """`vllm serve M --host 127.0.0.1 --port P ...`."""
        return launch(config, install, DEFAULT_COMMAND, [model, "--host", "127.0.0.1", "--port", str(port)])

    def probes(self, install: EngineInstall) -> tuple[Probe, ...]:
        """Its parser, read by its own Python."""
        return python_probes(self.name, install, DEFAULT_COMMAND, help_flag="--help=all")

    def facts(self, results: Mapping[str, CommandResult], install: EngineInstall) -> EngineFacts:
        """Version and flags."""
        return python_facts(self.name, results, install)

    def effective(self, server_info: Mapping[str, Any] | None, log_text: str) -> dict[str, Any]:
        """The engine's configuration line, the non-default arguments, then what the log says was chosen."""
        del server_info
        settings = by_flag(self.name, engine_config(log_text)) | by_flag(
            self.name, non_default_args(log_text)
        )
        return settings | adjusted_settings(self.name, log_text)

    def memory(self, log_text: str) -> dict[str, float]:
        """Per GPU, in GiB as printed."""
        return memory_numbers(self.name, log_text)


def non_default_args(log_text: str) -> dict[str, Any]:
    """The dict of the `non-default args:` line."""
    found = re.search(r"non-default args: (?=\{)", log_text)
    return key_values(bracketed(log_text, found.end())) if found else {}


def engine_config(log_text: str) -> dict[str, Any]:
    """The key=value pairs of the `Initializing a V1 LLM engine ... with config:` line."""
    found = re.search(r"LLM engine \(v[^)]*\) with config: (.*)", log_text)
    return key_values(found.group(1)) if found else {}
