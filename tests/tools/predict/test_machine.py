"""GPU names and surveyed hosts as machines."""

import pytest

from moeagent.memory.errors import InputError
from moeagent.memory.records import Gpu, HostFacts
from moeagent.tools.predict.machine import machine_from_facts, machine_from_name
from moeagent.tools.predict.records import Machine, Unknown

PCIE = "        GPU0    GPU1\nGPU0     X      NODE\nGPU1    NODE     X\n"
NVLINK = "        GPU0    GPU1\nGPU0     X      NV18\nGPU1    NV18     X\n"


def host(name: str, count: int = 2, topology: str | None = None, memory_mib: int = 97887) -> HostFacts:
    gpus = tuple(Gpu(index=i, name=name, memory_mib=memory_mib, memory_used_mib=4) for i in range(count))
    return HostFacts(name="gpu1", machine_id="m", gpus=gpus, cpu_cores=64, ram_gib=512, topology=topology)


@pytest.mark.parametrize(
    ("name", "expected", "sm"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell Max-Q", "12.0"),
        ("NVIDIA GeForce RTX 5090", "RTX 5090", "12.0"),
        ("NVIDIA H100 80GB HBM3", "H100", "9.0"),
        ("NVIDIA H100 PCIe", "H100 PCIe", "9.0"),
        ("NVIDIA H200", "H200", "9.0"),
        ("NVIDIA H20", "H20", "9.0"),
        ("NVIDIA B200", "B200", "10.0"),
        ("NVIDIA L40S", "L40S", "8.9"),
        ("NVIDIA L4", "L4", "8.9"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB", "8.0"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB", "8.0"),
    ],
)
def test_names_as_nvidia_smi_prints_them(name, expected, sm):
    machine = machine_from_facts(host(name))
    assert isinstance(machine, Machine)
    assert machine.spec is not None
    assert (machine.spec.name, machine.spec.sm) == (expected, sm)


def test_a_counted_name():
    machine = machine_from_name("8x RTX PRO 6000")
    assert (machine.gpu_count, machine.memory_mib, machine.fabric) == (8, 97887, "pcie5")
    assert machine_from_name("H200").gpu_count == 1


def test_a_gpu_that_is_not_in_the_table_needs_its_memory():
    with pytest.raises(InputError, match="not in the table"):
        machine_from_name("2x Foo")
    machine = machine_from_name("2x Foo 96GB")
    assert machine.spec is None
    assert machine.memory_mib == 96 * 1024
    assert "speed is not" in machine.notes[0]


def test_the_topology_decides_the_fabric():
    h100 = machine_from_facts(host("NVIDIA H100 80GB HBM3", topology=PCIE))
    assert isinstance(h100, Machine)
    assert h100.fabric == "pcie5"
    linked = machine_from_facts(host("NVIDIA H100 80GB HBM3", topology=NVLINK))
    assert isinstance(linked, Machine)
    assert linked.fabric == "nvlink4"


def test_a_surveyed_unknown_gpu_keeps_its_memory():
    machine = machine_from_facts(host("ACME X1", memory_mib=32000))
    assert isinstance(machine, Machine)
    assert machine.spec is None
    assert machine.memory_mib == 32000
    assert machine.used_mib == 4


def test_a_host_without_gpus_is_its_cores():
    machine = machine_from_facts(HostFacts(name="local", machine_id="m", cpu_cores=2, ram_gib=8))
    assert isinstance(machine, Machine)
    assert machine.gpu_name is None
    assert (machine.cpu_cores, machine.memory_mib) == (2, 8192)


def test_a_host_of_which_nothing_is_known():
    found = machine_from_facts(HostFacts(name="gpu1", machine_id="m"))
    assert isinstance(found, Unknown)
    assert "neither GPUs nor CPU cores" in str(found)
