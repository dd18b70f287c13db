"""Lines of the engine's log, in its own words (sglang 0.5.9)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

CAPACITY_OVERHEAD_GIB = 0.62
"""Between what the driver reports as total and the card's size."""


@dataclass(frozen=True)
class LogLine:
    """One line and when it is printed, in seconds since the start; tag None is a line without the prefix."""

    at: float
    text: str
    tag: str | None = None

    def render(self, start: datetime) -> str:
        """The line as it stands in the log."""
        if self.tag is None:
            return self.text
        stamp = (start + timedelta(seconds=self.at)).strftime("%Y-%m-%d %H:%M:%S")
        return f"[{stamp}{' ' + self.tag if self.tag else ''}] {self.text}"


def rank_tag(rank: int, *, expert_parallel: bool) -> str:
    """The tag of one worker."""
    return f"TP{rank} EP{rank}" if expert_parallel else f"TP{rank}"


def size(gib: float) -> str:
    """A size as torch prints it."""
    return f"{gib:.2f} GiB" if gib >= 1.0 else f"{gib * 1024:.2f} MiB"


def out_of_memory(
    *, gpu: int | str, capacity: float, free: float, allocated: float, graphs: float, wanted: float
) -> str:
    """torch's message when an allocation fails; sizes in GiB."""
    in_use = max(capacity - free, 0.0)
    idle = max(in_use - allocated - graphs - 1.1, 0.05)
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size(wanted)}. GPU {gpu} has a "
        "total capacity "
        f"of {capacity:.2f} GiB of which {size(max(free, 0.01))} is free. Including non-PyTorch memory, "
        "this process "
        f"has {in_use:.2f} GiB memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by "
        "PyTorch, "
        f"with {size(max(graphs, 0.02))} allocated in private pools (e.g., CUDA Graphs), and {size(idle)} "
        "is reserved "
        f"by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
        "Memory "
        f"Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


def decode_batch(
    *, running: int, tokens: int, usage: float, graph: bool, rate: float, queued: int, accept: float | None
) -> str:
    """The line that is printed every few decode steps."""
    speculation = f"accept len: {accept:.2f}, accept rate: {accept / 4.0:.2f}, " if accept else ""
    return (
        f"Decode batch, #running-req: {running}, #token: {tokens}, token usage: {usage:.2f}, {speculation}"
        f"cuda graph: {graph}, gen throughput (token/s): {rate:.2f}, #queue-req: {queued}"
    )


def prefill_batch(
    *, sequences: int, new: int, cached: int, usage: float, running: int, queued: int, rate: float
) -> str:
    """The line that is printed for every prefill pass."""
    return (
        f"Prefill batch, #new-seq: {sequences}, #new-token: {new}, #cached-token: {cached}, token usage: "
        f"{usage:.2f}, "
        f"#running-req: {running}, #queue-req: {queued}, input throughput (token/s): {rate:.2f}, cuda "
        "graph: False"
    )


def tactic_skipped(*, clock: str, rank_object: int, tactic: int, tile: str, group: int) -> str:
    """A kernel variant that the autotuner could not start: harmless by itself."""
    return (
        f"{clock} - WARNING - autotuner.py:496 - flashinfer.jit: [Autotuner]: Skipping tactic "
        "<flashinfer.fused_moe.core.get_cutlass_fused_moe_module.<locals>.MoERunner object at "
        f"0x{rank_object:x}> "
        f"{tactic}, due to failure while profiling: [TensorRT-LLM][ERROR] Assertion failed: Failed to "
        "initialize "
        f"cutlass TMA WS grouped gemm. Error: Error Internal (/workspace/csrc/nv_internal/tensorrt_llm/"
        f"cutlass_instantiations/120/gemm_grouped/120/cutlass_kernel_file_gemm_grouped_sm120_{tile}_BS_group{group}"
        f".generated.cu:60)"
    )


def native_frames(process: str, count: int, seed: int) -> tuple[str, ...]:
    """The native stack of a worker, as TensorRT-LLM's exceptions print it."""
    jit = "/root/.cache/flashinfer/0.6.3/120f/cached_ops/fused_moe_120/fused_moe_120.so"
    lines = [
        f"1       0x7f{seed:06x}1c2e tensorrt_llm::common::throwRuntimeError(char const*, int, char const*) "
        "+ 94"
    ]
    for depth in range(2, count + 1):
        address = (seed * 2654435761 + depth * 40503) & 0xFFFFFF
        if depth < 6:
            lines.append(
                f"{depth:<7} 0x7f{seed:06x}{depth:04x} {jit}(+0x{address:x}) [0x7f{seed:06x}{depth:04x}]"
            )
        else:
            symbol = (
                "_PyEval_EvalFrameDefault" if depth % 3 == 0 else "PyObject_Call" if depth % 7 == 0 else ""
            )
            lines.append(
                f"{depth:<7} 0x55{address:06x}{depth:04x} {process}({symbol}+0x{address & 0xFFFF:x}) "
                f"[0x55{address:06x}]"
            )
    return tuple(lines)


READY_LINE = "The server is fired up and ready to roll!"
LOGGING_NOISE = (
    "--- Logging error ---",
    "Traceback (most recent call last):",
    '  File "/usr/lib/python3.12/logging/__init__.py", line 1163, in emit',
    "    stream.write(msg + self.terminator)",
    "RuntimeError: reentrant call inside <_io.BufferedWriter name='<stderr>'>",
    "Call stack:",
    '  File "/sgl-workspace/sglang/python/sglang/srt/entrypoints/engine.py", line 870, in '
    "launch_phase_sigquit_handler",
    "    logger.error(",
    '  File "/usr/lib/python3.12/logging/__init__.py", line 1028, in handleError',
    "    sys.stderr.write('--- Logging error ---\\n')",
    "Message: 'Received sigquit from a child process. It usually means the child failed.'",
    "Arguments: ()",
)
"""What the parent prints when signals interrupt its own logging."""

CAPTURE_ADVICE = (
    "Possible solutions:",
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)",
    "3. disable torch compile by not using --enable-torch-compile",
    "4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)",
    "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose ",
)
PIECEWISE_ADVICE = (
    "Possible solutions:",
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    "2. set --piecewise-cuda-graph-max-tokens to a smaller value (e.g., 512)",
    "3. disable Piecewise CUDA graph by unset --enable-piecewise-cuda-graph",
    "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose ",
)


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Replace {name} by its value and leave every other brace alone."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value)).replace("{" + name + "!r}", repr(value))
    return text
