"""Pure parsers of what nvidia-smi prints."""

import csv
import io
import re

from moeagent.memory.records import Gpu, Record
from moeagent.tools.survey.commands import GPU_FIELDS, PROCESS_FIELDS


class GpuProcess(Record):
    """A process that holds memory of a GPU."""

    gpu: int | None
    """Index; None when the GPU is not in the list."""
    pid: int
    name: str
    memory_mib: int | None
    """None where the driver does not say (MIG, WSL)."""
    user: str | None = None


class GpuHealth(Record):
    """The part of `nvidia-smi -q` that decides whether a measurement can be trusted."""

    index: int
    throttle_reasons: tuple[str, ...] = ()
    ecc_uncorrected: int | None = None
    pcie_gen: tuple[int, int] | None = None
    """(now, at most); at rest a GPU lowers it."""
    pcie_width: tuple[int, int] | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    temperature_c: int | None = None
    mig: bool = False


def parse_gpus(text: str) -> tuple[tuple[Gpu, ...], dict[str, int], str | None]:
    """The GPUs, their indices by UUID, and the driver's version."""
    gpus, by_uuid, driver = [], {}, None
    for row in _rows(text, len(GPU_FIELDS)):
        values = dict(zip(GPU_FIELDS, row, strict=True))
        index = _integer(values["index"])
        if index is None:
            continue
        by_uuid[values["uuid"]] = index
        driver = _known(values["driver_version"])
        gpus.append(
            Gpu(
                index=index,
                name=values["name"],
                memory_mib=_integer(values["memory.total"]) or 0,
                memory_used_mib=_integer(values["memory.used"]) or 0,
                compute_capability=_known(values["compute_cap"]),
                power_limit_w=_decimal(values["power.limit"]),
            )
        )
    return tuple(gpus), by_uuid, driver


def parse_processes(text: str, users_text: str, by_uuid: dict[str, int]) -> tuple[GpuProcess, ...]:
    """Processes with memory on a GPU, with the user where `ps` knew it."""
    users = dict(line.split()[:2] for line in users_text.splitlines() if len(line.split()) >= 2)
    found = []
    for row in _rows(text, len(PROCESS_FIELDS)):
        uuid, pid, name, memory = row
        number = _integer(pid)
        if number is None:
            continue
        found.append(
            GpuProcess(
                gpu=by_uuid.get(uuid), pid=number, name=name, memory_mib=_integer(memory), user=users.get(pid)
            )
        )
    return tuple(found)


def parse_cuda_version(text: str) -> str | None:
    """The newest CUDA that the driver supports."""
    found = re.search(r"^CUDA Version\s*:\s*([\d.]+)", text, re.MULTILINE)
    return found.group(1) if found else None


def parse_health(text: str) -> tuple[GpuHealth, ...]:
    """One entry per GPU, in the order of `nvidia-smi -q`."""
    sections = re.split(r"^GPU [0-9A-Fa-f:.]+\s*$", text, flags=re.MULTILINE)[1:]
    return tuple(_health(index, section) for index, section in enumerate(sections))


def parse_p2p(text: str) -> tuple[tuple[int, int, str], ...]:
    """Pairs of GPUs (a < b) whose peer-to-peer read is not OK, with nvidia-smi's word for it."""
    lines = [line.split() for line in plain(text).splitlines() if line.strip().startswith("GPU")]
    header = lines[0] if lines and not _is_row(lines[0]) else []
    broken: list[tuple[int, int, str]] = []
    for words in lines[1 if header else 0 :]:
        row = int(words[0][3:])
        broken += [(row, col, word) for col, word in enumerate(words[1:]) if row < col and word in _NO_P2P]
    return tuple(broken)


def parse_links(text: str) -> frozenset[str]:
    """The kinds of link between GPUs in `nvidia-smi topo -m`: NV#, PIX, PXB, PHB, NODE, SYS."""
    kinds = set()
    for line in plain(text).splitlines():
        words = line.split()
        if words and re.fullmatch(r"GPU\d+", words[0]) and "X" in words:
            kinds |= {
                re.sub(r"\d+$", "", w) for w in words[1:] if re.fullmatch(r"NV\d+|PIX|PXB|PHB|NODE|SYS", w)
            }
    return frozenset(kinds)


_NO_P2P = frozenset({"CNS", "GNS", "TNS", "NS", "DR", "U"})
"""The legend of `nvidia-smi topo -p2p r`: chipset, GPU, topology or driver do not support it, or unknown."""


def plain(text: str) -> str:
    """Without the escape sequences by which nvidia-smi underlines a header even when nobody looks."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _is_row(words: list[str]) -> bool:
    return any(word in ("X", "OK") for word in words[1:])


def _health(index: int, section: str) -> GpuHealth:
    reasons = _block(section, r"Clocks (?:Throttle|Event) Reasons")
    active = tuple(
        name.strip()
        for name, state in re.findall(
            r"^\s+([A-Z][\w ]+?)\s*:\s*(Active|Not Active)\s*$", reasons, re.MULTILINE
        )
        if state == "Active" and name.strip() not in ("Idle", "Applications Clocks Setting")
    )
    power = _block(section, r"(?:GPU )?Power Readings")
    link = _block(section, r"GPU Link Info")
    volatile = _block(_block(section, r"ECC Errors"), "Volatile")
    uncorrected = [int(n) for n in re.findall(r"Uncorrectable[^:\n]*:\s*(\d+)", volatile)]
    return GpuHealth(
        index=index,
        throttle_reasons=active,
        ecc_uncorrected=sum(uncorrected) if uncorrected else None,
        pcie_gen=_now_and_max(_block(link, "PCIe Generation")),
        pcie_width=_now_and_max(_block(link, "Link Width")),
        power_limit_w=_number_after(power, r"(?:Current|Enforced)? ?Power Limit"),
        power_default_w=_number_after(power, r"Default Power Limit"),
        sm_clock_mhz=_whole(_number_after(_block(section, r"Clocks"), "SM")),
        sm_clock_max_mhz=_whole(_number_after(_block(section, r"Max Clocks"), "SM")),
        temperature_c=_whole(_number_after(section, r"GPU Current Temp")),
        mig=bool(re.search(r"MIG Mode\s*\n\s+Current\s*:\s*Enabled", section)),
    )


def _block(text: str, title: str) -> str:
    """The lines below a title that are indented deeper than it."""
    found = re.search(rf"^([ \t]*){title}\s*$", text, re.MULTILINE)
    if not found:
        return ""
    lines = []
    for line in text[found.end() + 1 :].splitlines():
        if line.strip() and len(line) - len(line.lstrip()) <= len(found.group(1)):
            break
        lines.append(line)
    return "\n".join(lines)


def _number_after(text: str, label: str) -> float | None:
    found = re.search(rf"^\s*{label}\s*:\s*([\d.]+)", text, re.MULTILINE)
    return float(found.group(1)) if found else None


def _now_and_max(block: str) -> tuple[int, int] | None:
    top = re.search(r"\bMax\s*:\s*(\d+)", block)
    now = re.search(r"\bCurrent\s*:\s*(\d+)", block)
    return (int(now.group(1)), int(top.group(1))) if top and now else None


def _rows(text: str, width: int) -> list[list[str]]:
    rows = csv.reader(io.StringIO(text), skipinitialspace=True)
    return [[cell.strip() for cell in row] for row in rows if len(row) == width]


def _known(text: str) -> str | None:
    return None if not text or text.startswith("[") or text == "N/A" else text


def _integer(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _decimal(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
