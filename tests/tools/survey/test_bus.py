"""How GPUs hang on the machine's buses."""

import subprocess

import pytest

from moeagent.tools.survey.bus import bus_findings, parse_acs, parse_pci_gpus
from moeagent.tools.survey.commands import machine_commands

# From kernel documentation (sysfs-bus-pci, iommu_groups/<grp>/type) and from lspci's own output format.
TWO = (
    "0|32.0 GT/s PCIe|16|32.0 GT/s PCIe|16|identity|0000:01:00.0\n"
    "1|32.0 GT/s PCIe|16|16.0 GT/s PCIe|8|DMA-FQ|0000:81:00.0\n"
)
ACS = """\
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
"""


def told(text=TWO, *, acs=0, nvlink=False, nodes=2, engine="sglang"):
    gpus = parse_pci_gpus(text)
    found = bus_findings(gpus, acs_bridges=acs, nvlink=nvlink, numa_nodes=nodes, engine=engine)
    return [(finding.severity, finding.line()) for finding in found]


def test_a_card_is_read_with_its_slot():
    first, second = parse_pci_gpus(TWO)
    assert (first.address, first.numa_node, first.link, first.iommu) == (
        "0000:01:00.0",
        0,
        (32.0, 16),
        "identity",
    )
    assert second.slot == (16.0, 8)


@pytest.mark.parametrize("text", ["", "|||||\n", "-1||||||0000:01:00.0", "garbage", "a|b|c|d|e|f|g"])
def test_what_sysfs_does_not_say_is_none(text):
    for gpu in parse_pci_gpus(text):
        assert (gpu.numa_node, gpu.link, gpu.slot) == (None, None, None)
    assert told(text) == []


def test_each_finding_has_its_consequence():
    severities, lines = zip(*told(acs=parse_acs(ACS)), strict=True)
    assert severities == ("warning", "info", "warning", "warning")
    assert "0000:81:00.0 can do 32 GT/s x16, its slot 16 GT/s x8" in lines[0]
    assert "NUMA nodes 0, 1" in lines[1]
    assert "IOMMU translates the addresses of 1 GPUs" in lines[2]
    assert "ACS) is on at 1 bridges" in lines[3]


def test_over_nvlink_the_bus_does_not_matter_between_gpus():
    lines = [line for _, line in told(acs=3, nvlink=True)]
    assert not any("ACS" in line or "IOMMU" in line for line in lines)


def test_several_nodes_matter_to_an_engine_on_processors():
    assert "numa distribute" in told("", engine="llamacpp")[0][1]
    assert told("", engine="sglang") == told("", engine="llamacpp", nodes=1) == []


def test_the_commands_are_sound_shell():
    probes = {probe.name: probe.command.argv for probe in machine_commands("/")}
    for name in ("gpu-bus", "acs"):
        assert subprocess.run(["sh", "-n", "-c", probes[name][2]], check=False).returncode == 0
    done = subprocess.run(probes["gpu-bus"], capture_output=True, text=True, check=True)
    assert all(len(line.split("|")) == 7 for line in done.stdout.splitlines())
