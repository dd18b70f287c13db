"""A host with the simulated box's GPUs: this machine, and this machine over a real OpenSSH server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.sshd import Sshd

from moeagent.tools.hosts.environment import HostWithEnvironment
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.ssh import SshHost
from moeagent.tools.sim.environment import sim_host_environment


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd")).start()
    yield server
    server.stop()


def with_gpus(host: Host, folder: Path) -> Host:
    box = sim_host_environment(folder, seed=0, model="A")
    env = {**box.env, "PATH": f"{box.bin_dir}:{os.environ['PATH']}"}
    return HostWithEnvironment(host, env, name=host.name, simulated=True)


@pytest.fixture(params=["local", pytest.param("ssh", marks=pytest.mark.part("sshd"))])
def gpu_host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    if request.param == "local":
        yield with_gpus(LocalHost(), tmp_path / "box")
        return
    sshd: Sshd = request.getfixturevalue("sshd")
    host = SshHost(sshd.spec, sshd.settings())
    yield with_gpus(host, tmp_path / "box")
    host.close()
