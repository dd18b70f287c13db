"""llama.cpp's own HTTP server, the one inside the xllamacpp wheel, under llama-server's flags.

`python -m moeagent.tools.engines.llama_serve -m MODEL.gguf --port 8080 -np 4`. Slots, batching, endpoints and
log lines are llama.cpp's. Exit status 1 when the arguments, the port or the model are wrong, with llama.cpp's
own lines on standard error; SIGTERM and SIGINT stop it cleanly. Needs the extra `local`.
"""

import ctypes
import os
import signal
import sys
import threading
from types import ModuleType
from typing import Any

from moeagent.tools.engines.llama_options import AUTO_SLOTS, BadArgument, help_text, parse

POLL_S = 0.1
FLUSH_S = 5.0


def main(arguments: list[str]) -> int:
    """Serves until a signal; returns the exit status."""
    try:
        chosen = parse(arguments)
    except BadArgument as error:
        return _fail(str(error))
    if "help" in chosen:
        sys.stdout.write(help_text())
        return 0
    try:
        import xllamacpp
    except ImportError:
        return _fail("error: the package xllamacpp is missing: pip install 'moeagent[local]'")
    if "version" in chosen:
        sys.stderr.write(f"version: {xllamacpp.__version__} (xllamacpp)\n")
        return 0
    if "model.path" not in chosen:
        return _fail("error: --model is required")
    return _serve(xllamacpp, chosen)


def common_params(xllamacpp: ModuleType, chosen: dict[str, Any]) -> Any:
    """xllamacpp.CommonParams with the chosen settings over llama-server's defaults."""
    params = xllamacpp.CommonParams()
    params.port, params.ui, params.n_parallel = 8080, False, -1
    for target, value in chosen.items():
        owner, _, name = target.rpartition(".")
        setattr(getattr(params, owner) if owner else params, name, _native(xllamacpp, target, value))
    if "timeout_read" in chosen:
        params.timeout_write = params.timeout_read
    if params.n_parallel < 0:
        params.n_parallel = AUTO_SLOTS
        params.kv_unified = chosen.get("kv_unified", True)
    return params


def _native(xllamacpp: ModuleType, target: str, value: Any) -> Any:
    if target in ("cache_type_k", "cache_type_v"):
        return getattr(xllamacpp.ggml_type, f"GGML_TYPE_{value.upper()}")
    if target == "flash_attn_type":
        name = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}[value]
        return getattr(xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{name}")
    if target == "load_mode":
        name = {"mmap+mlock": "MMAP_MLOCK", "dio": "DIRECT_IO"}.get(value, value.upper())
        return getattr(xllamacpp.llama_load_mode, f"LLAMA_LOAD_MODE_{name}")
    return value


def _serve(xllamacpp: ModuleType, chosen: dict[str, Any]) -> int:
    """Serves until a signal ends the process with status 0; returns only when the start failed.

    The signals are blocked and waited for, in every thread: a handler would be replaced by llama.cpp's own,
    and one that arrives during the start would be lost.
    """
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    servers: list[Any] = []
    errors: list[RuntimeError] = []

    def start() -> None:
        try:
            servers.append(xllamacpp.Server(common_params(xllamacpp, chosen)))
        except RuntimeError as error:
            errors.append(error)

    threading.Thread(target=start, daemon=True).start()
    while signal.sigtimedwait(signals, POLL_S) is None:
        if errors:
            _flush_log(xllamacpp)
            return _fail(f"error: {errors[0]}")
    # The log is flushed by a thread: a stop never waits for a lock that the server holds.
    flush = threading.Thread(target=_flush_log, args=(xllamacpp,), daemon=True)
    flush.start()
    flush.join(FLUSH_S)
    sys.stderr.write("llama_serve: stopped\n")
    sys.stderr.flush()
    # The server's destructor can wait for ever when it is stopped right after its start.
    os._exit(0)


def _flush_log(xllamacpp: ModuleType) -> None:
    """Writes out what llama.cpp's logging thread still holds: a failed start would end without it.

    The two C++ functions are exported under mangled names; a wheel without them loses the last lines.
    """
    library = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
    try:
        main_log, flush = library._Z15common_log_mainv, library._Z16common_log_flushP10common_log
    except AttributeError:
        return
    main_log.restype, flush.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    flush(main_log())


def _fail(line: str) -> int:
    sys.stderr.write(line + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
