"""What the survey's facts mean for a campaign: each finding with its consequence and what to do."""

from collections.abc import Iterator
from typing import Literal

from moeagent.memory.errors import EngineError, HostError, InputError, MoeagentError
from moeagent.memory.records import Gpu, Record
from moeagent.tools.engines.catalogue import version_key
from moeagent.tools.survey.model import ModelPlace, is_later_split
from moeagent.tools.survey.nvidia import GpuHealth, GpuProcess
from moeagent.tools.survey.system import Disk, Limits, Memory

HELD_MIB = 1024
"""A desktop or a monitoring agent holds less; a model server holds far more."""
DISK_FATAL_GIB, DISK_LOW_GIB = 0.5, 10.0
"""Logs and load results of a run take tens of MiB; kernel caches of the engines several GiB."""
SHM_LOW_GIB = 1.0
"""NCCL and the engines pass tensors through /dev/shm; a container's default is 64 MiB."""
OPEN_FILES_LOW = 4096
"""Each client stream takes a file; a rung of 1024 takes over a thousand on both sides of the server."""
CUDA_FOR_SM120 = "12.8"
"""First CUDA with code for compute capability 12.0 (CUDA 12.8 release notes)."""


class Finding(Record):
    """One thing that the survey found."""

    severity: Literal["fatal", "warning", "info"]
    area: Literal["host", "engine", "model"]
    what: str
    consequence: str
    action: str

    def line(self) -> str:
        """The finding in one line."""
        return f"{self.what}: {self.consequence}. {self.action}."


def as_error(findings: tuple[Finding, ...]) -> MoeagentError | None:
    """One error for all fatal findings, or None; its class is that of the first one's area."""
    fatal = [finding for finding in findings if finding.severity == "fatal"]
    if not fatal:
        return None
    kinds = {"host": HostError, "engine": EngineError, "model": InputError}
    return kinds[fatal[0].area](" ".join(finding.line() for finding in fatal))


def gpu_findings(
    gpus: tuple[Gpu, ...], processes: tuple[GpuProcess, ...], *, engine: str, needs_gpu: bool, smi_error: str
) -> Iterator[Finding]:
    """No GPU, unlike GPUs, memory held by somebody else."""
    if not gpus:
        if needs_gpu:
            yield _fatal(
                "host",
                f"No GPU was found ({smi_error})",
                f"{engine} cannot run",
                "Check nvidia-smi on the host",
            )
        elif engine == "llamacpp":
            yield _info(
                "host", "No GPU was found", "llama.cpp computes on the CPU", "Nothing to do if that is meant"
            )
        return
    names = sorted({gpu.name for gpu in gpus})
    if len(names) > 1:
        yield _warning(
            "host",
            f"The GPUs differ: {', '.join(names)}",
            "the slowest sets the pace",
            "Set CUDA_VISIBLE_DEVICES",
        )
    for gpu in gpus:
        if gpu.memory_used_mib > HELD_MIB:
            yield _held(gpu, [process for process in processes if process.gpu == gpu.index])


def health_findings(health: tuple[GpuHealth, ...], xid_text: str) -> Iterator[Finding]:
    """Throttling, a lowered power limit, memory errors, a narrow link, driver errors."""
    for gpu in health:
        name = f"GPU {gpu.index}"
        slow = [r for r in gpu.throttle_reasons if "Slowdown" in r or "Thermal" in r or "Brake" in r]
        if slow:
            yield _warning(
                "host", f"{name} is throttled ({', '.join(slow)})", "it is slower than it could be", "Cool it"
            )
        if gpu.power_limit_w and gpu.power_default_w and gpu.power_limit_w < 0.98 * gpu.power_default_w:
            limits = f"{gpu.power_limit_w:.0f} W of {gpu.power_default_w:.0f} W"
            yield _warning(
                "host", f"{name} is limited to {limits}", "results hold at this limit", "Raise it or keep it"
            )
        if gpu.ecc_uncorrected:
            what = f"{name} counted {gpu.ecc_uncorrected} uncorrectable memory errors"
            yield _warning("host", what, "results may be wrong and servers may die", "Reset or replace it")
        if gpu.pcie_width and gpu.pcie_width[0] < gpu.pcie_width[1]:
            what = f"{name} has a PCIe width of x{gpu.pcie_width[0]} of x{gpu.pcie_width[1]}"
            yield _warning("host", what, "exchange between GPUs is slower", "Check slot and riser")
        if gpu.mig:
            yield _warning(
                "host", f"{name} is in MIG mode", "the engines see slices of it", "Turn MIG off if you can"
            )
    if xid_text.strip():
        last = xid_text.strip().splitlines()[-1]
        yield _warning(
            "host", f"The driver reported errors, last: {last}", "a GPU may be unwell", "See the Xid number"
        )


def link_findings(
    broken: tuple[tuple[int, int, str], ...], links: frozenset[str], iommu_groups: int | None
) -> Iterator[Finding]:
    """Peer-to-peer access that is missing, and what stands in its way."""
    if broken:
        pairs = ", ".join(f"{a}-{b} {word}" for a, b, word in broken[:4])
        yield _warning(
            "host",
            f"{len(broken)} pairs of GPUs have no peer-to-peer access ({pairs})",
            "collectives go through host memory",
            "See the driver, the IOMMU and ACS settings",
        )
    if iommu_groups and links and not links & {"NV"}:
        yield _info(
            "host",
            f"The IOMMU is on ({iommu_groups} groups) and GPUs speak over PCIe",
            "with ACS their traffic takes the way through the root complex",
            "Tune the NCCL variables before kernels",
        )


def cuda_findings(gpus: tuple[Gpu, ...], cuda: str | None) -> Iterator[Finding]:
    """A driver that is too old for the GPU."""
    newest = [gpu for gpu in gpus if (gpu.compute_capability or "0").startswith("12.")]
    if newest and cuda and version_key(cuda) < version_key(CUDA_FOR_SM120):
        what = f"The driver supports CUDA {cuda}, {newest[0].name} needs {CUDA_FOR_SM120}"
        yield _fatal("host", what, "no kernel runs on it", "Update the driver")


def machine_findings(
    memory: Memory | None, disk: Disk | None, shm: Disk | None, limits: Limits, *, gpus: int
) -> Iterator[Finding]:
    """Memory, disk, shared memory, limits."""
    if disk is not None and disk.free_gib < DISK_LOW_GIB:
        what = f"{disk.free_gib:.1f} GiB are free on {disk.mount}"
        make = _fatal if disk.free_gib < DISK_FATAL_GIB else _warning
        yield make("host", what, "logs and kernel caches may not fit", "Free some space")
    if shm is not None and gpus > 1 and shm.total_gib < SHM_LOW_GIB:
        what = f"{shm.mount} has {shm.total_gib * 1024:.0f} MiB"
        yield _warning(
            "host",
            what,
            "several GPUs die with a bus error in NCCL",
            "Start the container with --shm-size 16g",
        )
    if limits.open_files is not None and limits.open_files < OPEN_FILES_LOW:
        what = f"A process may open {limits.open_files} files"
        yield _warning("host", what, "high concurrency fails with 'too many open files'", "Raise ulimit -n")
    if memory is not None and memory.available_gib < 2:
        what = f"{memory.available_gib:.1f} GiB of memory are available"
        yield _warning(
            "host", what, "loading a model may end in the kernel's OOM killer", "Stop what uses it"
        )


def model_findings(
    place: ModelPlace | None, engine: str, memory: Memory | None, *, gpus: int
) -> Iterator[Finding]:
    """A path without a model, a broken one, one that does not fit into memory."""
    if place is None or place.kind == "unknown":
        return
    path = place.facts.path
    if place.kind == "missing":
        yield from _missing_model(path, engine)
        return
    if engine == "llamacpp" and place.kind == "directory":
        yield _fatal(
            "model", f"{path} is a folder", "llama.cpp loads one GGUF file", "Give the path of the file"
        )
    elif place.complaint:
        yield _fatal(
            "model",
            f"The model {path} cannot be read ({place.complaint})",
            "no engine loads it",
            "Check the path",
        )
    if is_later_split(path):
        yield _fatal(
            "model",
            f"{path} is a later part of a split model",
            "llama.cpp wants the first",
            "Give -00001-of-…",
        )
    if place.missing_files:
        some = ", ".join(place.missing_files[:3])
        what = f"{len(place.missing_files)} weight files of {path} are missing ({some})"
        yield _fatal("model", what, "loading fails after minutes", "Complete the download")
    size = place.facts.size_gib
    if gpus == 0 and size and memory is not None and size > memory.available_gib:
        what = f"The model has {size:.1f} GiB, {memory.available_gib:.1f} GiB of memory are available"
        yield _fatal("model", what, "it does not fit", "Take a smaller one or free memory")


def engine_findings(
    engine: str, *, installed: bool, version: str | None, source: str, said: str
) -> Iterator[Finding]:
    """An engine that does not answer, or that does not say what it accepts."""
    if not installed:
        what = f"{engine} does not answer ({said})"
        yield _fatal(
            "engine", what, "nothing can be launched", "Install it, or name its command with --engine-command"
        )
    elif source.startswith("catalogue"):
        what = f"{engine} {version or '(version unknown)'} did not show its own flags"
        yield _warning(
            "engine", what, f"flags are checked against the {source}", "Check that its --help works"
        )


def _missing_model(path: str, engine: str) -> Iterator[Finding]:
    if engine != "llamacpp" and path.count("/") == 1 and not path.startswith((".", "/", "~")):
        what = f"There is no folder {path} on the host"
        yield _warning(
            "model",
            what,
            f"{engine} will look for it on the model hub",
            "Download it before for a fair start",
        )
        return
    yield _fatal(
        "model", f"There is no model at {path} on the host", "nothing can be loaded", "Check --model"
    )


def _held(gpu: Gpu, processes: list[GpuProcess]) -> Finding:
    who = "; ".join(
        f"pid {p.pid} ({p.name}{f', user {p.user}' if p.user else ''}) {p.memory_mib or '?'} MiB"
        for p in processes
    )
    what = f"GPU {gpu.index} holds {gpu.memory_used_mib} of {gpu.memory_mib} MiB already"
    return _fatal(
        "host",
        f"{what}, by {who or 'a process that cannot be seen from here'}",
        "the engine would get less memory than it plans with",
        "Stop it, or leave this GPU out with CUDA_VISIBLE_DEVICES",
    )


def _fatal(area: Literal["host", "engine", "model"], what: str, consequence: str, action: str) -> Finding:
    return Finding(severity="fatal", area=area, what=what, consequence=consequence, action=action)


def _warning(area: Literal["host", "engine", "model"], what: str, consequence: str, action: str) -> Finding:
    return Finding(severity="warning", area=area, what=what, consequence=consequence, action=action)


def _info(area: Literal["host", "engine", "model"], what: str, consequence: str, action: str) -> Finding:
    return Finding(severity="info", area=area, what=what, consequence=consequence, action=action)
