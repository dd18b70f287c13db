"""From what the user wrote to a host."""

from moeagent.memory.errors import InputError
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.ssh_settings import SshSettings


def open_host(spec: str, *, ssh: SshSettings | None = None) -> Host:
    """The host of a specification: `local`, `user@host[:port]`, or an alias of the SSH configuration.

    Nothing is connected until the first call. Raises InputError for a specification that cannot be read.
    """
    if spec == "local":
        return LocalHost()
    if not spec or spec.startswith("-") or any(c.isspace() for c in spec):
        raise InputError(f"host {spec!r}: write local, user@host[:port] or a name of ~/.ssh/config")
    from moeagent.tools.hosts.ssh import SshHost

    return SshHost(spec, ssh or SshSettings())
