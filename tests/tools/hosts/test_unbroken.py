"""Work that a broken connection spoils, over a real sshd that is killed under it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.sshd import Sshd

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Command
from moeagent.tools.hosts.ssh import SshHost
from moeagent.tools.hosts.unbroken import TRIES, unbroken

pytestmark = pytest.mark.part("sshd")


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[tuple[SshHost, Sshd]]:
    """A host that was met, and its server."""
    server = Sshd(tmp_path / "sshd").start()
    host = SshHost(server.spec, server.settings())
    host.run(Command(("true",)), timeout_s=30)
    yield host, server
    host.close()
    server.stop()


def restart(server: Sshd) -> None:
    server.stop()
    server.start()


def test_work_is_done_again_after_a_break_that_it_did_not_notice(broken: tuple[SshHost, Sshd]) -> None:
    host, server = broken
    breaks, told = iter([True, True]), []

    def work() -> int:
        if next(breaks, False):
            restart(server)
        return len(told)

    assert unbroken(host, work, "counting", on_break=lambda: told.append(1)) == 2
    assert host.breaks == 2


def test_an_error_of_the_work_counts_only_when_the_connection_held(broken: tuple[SshHost, Sshd]) -> None:
    host, server = broken
    breaks = iter([True])

    def work() -> None:
        if next(breaks, False):
            restart(server)
            raise HostError("refused, because the connection broke")
        raise HostError("refused, because the server says no")

    with pytest.raises(HostError, match="the server says no"):
        unbroken(host, work, "asking")


def test_a_connection_that_breaks_each_time_is_one_error(broken: tuple[SshHost, Sshd]) -> None:
    host, server = broken
    with pytest.raises(RemoteError, match=f"broke {TRIES} times in a row while measuring L3.*then resume"):
        unbroken(host, lambda: restart(server), "measuring L3")


def test_this_machine_has_no_connection_to_break() -> None:
    with pytest.raises(HostError, match="no"):
        unbroken(LocalHost(), lambda: LocalHost().read("/none/such"), "reading")
    assert unbroken(LocalHost(), lambda: 1, "counting") == 1
