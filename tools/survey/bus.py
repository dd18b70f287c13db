"""How GPUs hang on the machine's buses: NUMA nodes, PCIe slots, IOMMU and ACS, and what that costs."""

import re
from collections.abc import Iterator

from moeagent.memory.records import Record
from moeagent.tools.survey.findings import Finding


class PciGpu(Record):
    """One GPU as the kernel sees it on its bus; None where sysfs does not say."""

    address: str
    numa_node: int | None
    link: tuple[float, int] | None
    """Fastest (GT/s, lanes) of the card."""
    slot: tuple[float, int] | None
    """Fastest (GT/s, lanes) of the port above it."""
    iommu: str | None
    """Domain type: identity passes addresses through, DMA and DMA-FQ translate each."""


def parse_pci_gpus(text: str) -> tuple[PciGpu, ...]:
    """The lines of the command gpu-bus."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return tuple(
        PciGpu(
            address=row[6],
            numa_node=int(row[0]) if row[0].isdigit() else None,
            link=_link(row[1], row[2]),
            slot=_link(row[3], row[4]),
            iommu=row[5] or None,
        )
        for row in rows
        if len(row) == 7
    )


def parse_acs(text: str) -> int:
    """Bridges on which access control redirects or checks requests (a `+` behind SrcValid or ReqRedir)."""
    return sum(bool(re.search(r"(?:SrcValid|ReqRedir)\+", line)) for line in text.splitlines())


def bus_findings(
    gpus: tuple[PciGpu, ...], *, acs_bridges: int, nvlink: bool, numa_nodes: int | None, engine: str
) -> Iterator[Finding]:
    """Slots that are slower than their cards, and what stands between GPUs that speak over PCIe."""
    for gpu in gpus:
        if gpu.link and gpu.slot and _rate(gpu.slot) < _rate(gpu.link):
            yield _told(
                "warning",
                f"The GPU at {gpu.address} can do {_words(gpu.link)}, its slot {_words(gpu.slot)}",
                "loading and the exchange between GPUs are slower than the card allows",
                "Move it to a faster slot, or see the BIOS and the riser",
            )
    nodes = sorted({gpu.numa_node for gpu in gpus if gpu.numa_node is not None})
    if len(nodes) > 1:
        yield _told(
            "info",
            f"The GPUs hang on the NUMA nodes {', '.join(map(str, nodes))}",
            "what crosses them takes the link between the sockets",
            "Keep small parallel groups on one node, and bind processes with numactl",
        )
    if not gpus and engine == "llamacpp" and (numa_nodes or 1) > 1:
        yield _told(
            "info",
            f"The processors are {numa_nodes} NUMA nodes",
            "threads that read the other node's memory wait for it",
            "Try --numa distribute, or numactl in front of the command",
        )
    if len(gpus) > 1 and not nvlink:
        yield from _peer_findings(gpus, acs_bridges)


def _peer_findings(gpus: tuple[PciGpu, ...], acs_bridges: int) -> Iterator[Finding]:
    """Sources: NCCL documentation, troubleshooting, PCI access control; kernel documentation, iommu."""
    translated = [gpu for gpu in gpus if gpu.iommu and gpu.iommu.startswith("DMA")]
    if translated:
        yield _told(
            "warning",
            f"The IOMMU translates the addresses of {len(translated)} GPUs that speak over PCIe",
            "peer-to-peer copies go through the root complex, are slower, and may hang",
            "Boot with iommu=pt where the machine is yours",
        )
    if acs_bridges:
        yield _told(
            "warning",
            f"PCI access control (ACS) is on at {acs_bridges} bridges",
            "peer-to-peer copies are redirected through the root complex",
            "Turn ACS off in the BIOS or with setpci, outside of virtual machines",
        )


def _link(speed: str, width: str) -> tuple[float, int] | None:
    found = re.match(r"([\d.]+) GT/s", speed)
    return (float(found[1]), int(width)) if found and width.isdigit() and int(width) else None


def _rate(link: tuple[float, int]) -> float:
    return link[0] * link[1]


def _words(link: tuple[float, int]) -> str:
    return f"{link[0]:g} GT/s x{link[1]}"


def _told(severity: str, what: str, consequence: str, action: str) -> Finding:
    return Finding.model_validate(
        {"severity": severity, "area": "host", "what": what, "consequence": consequence, "action": action}
    )
