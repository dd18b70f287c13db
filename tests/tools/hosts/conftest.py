"""Hosts to test on: this machine, and this machine over a real OpenSSH server."""

from collections.abc import Iterator

import pytest
from parts.sshd import Sshd

from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.ssh import SshHost


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server for tests that do not harm it."""
    server = Sshd(tmp_path_factory.mktemp("sshd")).start()
    yield server
    server.stop()


@pytest.fixture
def ssh_host(sshd: Sshd) -> Iterator[SshHost]:
    host = SshHost(sshd.spec, sshd.settings())
    yield host
    host.close()


@pytest.fixture(params=["local", pytest.param("ssh", marks=pytest.mark.part("sshd"))])
def host(request: pytest.FixtureRequest) -> Host:
    """Each test runs on both kinds of host."""
    if request.param == "local":
        return LocalHost()
    return request.getfixturevalue("ssh_host")
