"""Engines by name, and the install that stands in where the user lists none."""

import shutil
import sys
from importlib.util import find_spec

from rapidfuzz import process

from moeagent.memory.errors import InputError
from moeagent.tools.engines.llamacpp import LlamacppEngine
from moeagent.tools.engines.protocol import Engine, EngineInstall
from moeagent.tools.engines.sglang import SglangEngine
from moeagent.tools.engines.vllm import VllmEngine

ENGINES: tuple[Engine, ...] = (SglangEngine(), VllmEngine(), LlamacppEngine())
_OTHER_NAMES = {"llama.cpp": "llamacpp", "llama-cpp": "llamacpp", "llama-server": "llamacpp"}


def engine_by_name(name: str) -> Engine:
    """The engine of this name. Raises InputError with the nearest name for an unknown one."""
    wanted = _OTHER_NAMES.get(name.lower(), name.lower())
    found = next((engine for engine in ENGINES if engine.name == wanted), None)
    if found is not None:
        return found
    names = [engine.name for engine in ENGINES]
    near = process.extractOne(wanted, names, score_cutoff=50)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise InputError(f"There is no engine {name!r}.{hint} Known engines: {', '.join(names)}")


def default_install(engine: str, *, local: bool) -> EngineInstall:
    """The engine as found in the PATH; for llama.cpp on this machine, where there is no llama-server, the one
    inside the xllamacpp wheel (the extra `local`).
    """
    embedded = local and engine == "llamacpp" and not shutil.which("llama-server") and find_spec("xllamacpp")
    return embedded_llamacpp() if embedded else EngineInstall()


def embedded_llamacpp() -> EngineInstall:
    """llama.cpp's own server inside the xllamacpp wheel, under llama-server's flag names."""
    return EngineInstall(command=(sys.executable, "-m", "moeagent.tools.engines.llama_serve"))
