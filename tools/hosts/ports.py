"""TCP ports on a host: which are taken, and by whom."""

from moeagent.memory.errors import HostError
from moeagent.memory.records.base import Record
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.script import ask, script

FIRST_PORT = 30_000
"""SGLang's default port; the search for a free one starts here."""
_CANDIDATES = 1_000


class PortHolder(Record):
    """A process that listens."""

    pid: int
    user: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid}, user {self.user})"


def listening_ports(host: Host) -> frozenset[int]:
    """Every TCP port that somebody listens on, on any address."""
    result = ask(host, script("ports", "listening"), "listing its ports")
    return frozenset(int(line.split()[0], 16) for line in result.text.splitlines())


def port_holders(host: Host, port: int) -> tuple[PortHolder, ...]:
    """Who listens on the port; empty when nobody does or when we may not see who."""
    result = ask(host, script("ports", "holders", f"{port:04X}"), f"looking who holds port {port}")
    return tuple(
        PortHolder(pid=int(pid), user=user, name=name)
        for pid, user, name in (line.split(" ", 2) for line in result.text.splitlines())
    )


def check_port(host: Host, port: int) -> None:
    """Raises HostError, naming the holder as far as it is visible, when the port is taken."""
    if port not in listening_ports(host):
        return
    holders = ", ".join(map(str, port_holders(host, port))) or "a process that this user cannot see"
    raise HostError(
        f"{host.name}: port {port} is taken by {holders}: stop it or give another port; leftovers of earlier "
        "runs are stopped by `moeagent reap`"
    )


def free_port(host: Host, first: int = FIRST_PORT) -> int:
    """The first port from `first` on that nobody listens on. Raises HostError when all are taken."""
    taken = listening_ports(host)
    for port in range(first, min(first + _CANDIDATES, 65_536)):
        if port not in taken:
            return port
    raise HostError(f"{host.name}: no free port from {first} on: give another first port")
