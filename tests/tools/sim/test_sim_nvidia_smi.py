"""nvidia-smi of the box answers what a survey asks."""

import subprocess
from collections.abc import Callable

from moeagent.tools.sim.environment import SimHost
from tests.tools.sim.conftest import READY, Launcher

Smi = Callable[..., subprocess.CompletedProcess[str]]


def test_queries_in_csv(nvidia_smi: Smi) -> None:
    fields = "index,name,memory.total,memory.used,driver_version,compute_cap,power.limit"
    rows = nvidia_smi(f"--query-gpu={fields}", "--format=csv,noheader,nounits").stdout.strip().split("\n")
    assert len(rows) == 8
    assert rows[0].split(", ") == [
        "0", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "97887", "4",
        "580.95.05-simulated", "12.0", "600.00",
    ]  # fmt: skip
    with_units = nvidia_smi("--query-gpu=memory.total,utilization.gpu", "--format=csv").stdout.split("\n")
    assert with_units[:2] == ["memory.total [MiB], utilization.gpu [%]", "97887 MiB, 0 %"]
    one = nvidia_smi("--query-gpu=index", "--format=csv,noheader", "-i", "3").stdout
    assert one == "3\n"


def test_an_unknown_field_is_refused(nvidia_smi: Smi) -> None:
    done = nvidia_smi("--query-gpu=colour", "--format=csv")
    assert done.returncode == 2
    assert "not a valid field to query" in done.stdout


def test_other_forms(nvidia_smi: Smi) -> None:
    assert "Driver Version: 580.95.05-simulated" in nvidia_smi().stdout
    assert nvidia_smi("-L").stdout.startswith("GPU 0: NVIDIA RTX PRO 6000")
    assert "CUDA Version" in nvidia_smi("-q").stdout
    assert "DRIVER version" in nvidia_smi("--version").stdout
    topology = nvidia_smi("topo", "-m").stdout
    assert "NODE" in topology
    assert "SYS" in topology
    assert nvidia_smi("topo", "-p2p", "r").stdout.count("OK") == 8 * 7 + 1


def test_memory_of_a_running_server_is_shown(glm_box: SimHost, nvidia_smi: Smi, launch: Launcher) -> None:
    server = launch(glm_box)
    assert server.wait_for(READY)
    used = nvidia_smi("--query-gpu=memory.used", "--format=csv,noheader,nounits").stdout.split()
    assert all(int(value) > 90_000 for value in used)
    apps = nvidia_smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits").stdout
    assert apps.count(str(server.process.pid)) == 8
    server.process.kill()
    assert server.ended() == 137
    assert set(nvidia_smi("--query-gpu=memory.used", "--format=csv,noheader,nounits").stdout.split()) == {"4"}
