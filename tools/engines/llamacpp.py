"""llama.cpp: launch command, readiness, flags, effective settings, memory lines."""

from collections.abc import Mapping
from typing import Any

from moeagent.memory.records import EngineFacts, ServerConfig
from moeagent.tools.engines.log_lines import adjusted_settings, memory_numbers
from moeagent.tools.engines.probing import binary_facts, binary_probes
from moeagent.tools.engines.protocol import EngineInstall, LoadApi, Probe, ReadySpec, StageSpec
from moeagent.tools.engines.render import launch
from moeagent.tools.hosts.protocol import Command, CommandResult

DEFAULT_COMMAND = ("llama-server",)

READY = ReadySpec(
    health_paths=("/health",),
    ready_log=r"listening on http",
    stages=(
        StageSpec(name="load", pattern=r"initializing \.\.\.|loading model", stall_s=900),
        StageSpec(name="kv_pool", pattern=r"threadpool init|KV buffer size|n_slots =", stall_s=300),
        StageSpec(name="warmup", pattern=r"warming up", stall_s=300),
        StageSpec(name="serving", pattern=r"listening on http", stall_s=600),
    ),
)
"""Stall times: a GGUF on a network disk is read without a line; experts in host memory warm up slowly."""

LOAD = LoadApi(
    api="openai-completions",
    flush_path=None,
    info_path="/props",
    ignore_eos_body={"ignore_eos": True, "cache_prompt": False},
)


class LlamacppEngine:
    """The Engine protocol for llama.cpp's HTTP server."""

    name = "llamacpp"
    ready = READY
    load = LOAD

    def command(self, config: ServerConfig, *, model: str, port: int, install: EngineInstall) -> Command:
        """`llama-server -m M --host 127.0.0.1 --port P ...`."""
        own = ["-m", model, "--host", "127.0.0.1", "--port", str(port)]
        return launch(config, install, DEFAULT_COMMAND, own)

    def probes(self, install: EngineInstall) -> tuple[Probe, ...]:
        """Its help and version."""
        return binary_probes(install, DEFAULT_COMMAND)

    def facts(self, results: Mapping[str, CommandResult], install: EngineInstall) -> EngineFacts:
        """Version and flags."""
        return binary_facts(self.name, results, install)

    def effective(self, server_info: Mapping[str, Any] | None, log_text: str) -> dict[str, Any]:
        """What the log says, and of /props the slots and the context of each."""
        settings = adjusted_settings(self.name, log_text)
        if server_info:
            slots = server_info.get("total_slots")
            context = (server_info.get("default_generation_settings") or {}).get("n_ctx")
            settings |= {k: v for k, v in (("--parallel", slots), ("n_ctx_slot", context)) if v is not None}
        return settings

    def memory(self, log_text: str) -> dict[str, float]:
        """Buffer sizes, and the tokens that all slots hold together."""
        numbers = memory_numbers(self.name, log_text)
        settings = adjusted_settings(self.name, log_text)
        slots, context = settings.get("--parallel"), settings.get("n_ctx_slot")
        if slots and context:
            unified = str(settings.get("kv_unified")).lower() == "true"
            numbers["kv_tokens"] = float(context if unified else slots * context)
        return numbers
