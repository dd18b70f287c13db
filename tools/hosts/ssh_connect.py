"""Reaching an SSH server over any number of hops: trust its key, log in, or say what to do."""

import logging
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.known_hosts import KnownHosts, Trust, add_known_host, fingerprint
from moeagent.tools.hosts.ssh_auth import log_in
from moeagent.tools.hosts.ssh_config import Hop

if TYPE_CHECKING:
    from paramiko import PKey, Transport

_LOG_CHANNEL = "moeagent.paramiko"


class UnreachableError(RemoteError):
    """The server did not answer or the connection broke: worth another try."""


class Line:
    """A socket, or what paramiko takes for one, that notes when something last came through it."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.heard_at = time.monotonic()

    def recv(self, size: int) -> bytes:
        """See socket.recv."""
        data: bytes = self._sock.recv(size)
        self.heard_at = time.monotonic()
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class Connection:
    """Transports through all hops; the last one is the host's."""

    def __init__(self, transports: "list[Transport]", line: Line) -> None:
        self._transports = transports
        self._line = line

    @property
    def silent_s(self) -> float:
        """For how long nothing has come from the host: bulk data on a slow line is a sign of life too."""
        return time.monotonic() - self._line.heard_at

    @property
    def transport(self) -> "Transport":
        """The one that ends at the host."""
        return self._transports[-1]

    def alive(self) -> bool:
        """False as soon as any part of the way is known to be cut."""
        return all(t.is_active() for t in self._transports)

    def close(self) -> None:
        """Close the whole way."""
        _close_all(self._transports)


def connect(hops: tuple[Hop, ...], *, use_agent: bool) -> Connection:
    """Open the whole way. Raises UnreachableError where another try may help, else HostError."""
    # paramiko reports to its log what is raised here as well; without a handler it would reach stderr.
    logging.getLogger(_LOG_CHANNEL).addHandler(logging.NullHandler())
    transports: list[Transport] = []
    try:
        for hop in hops:
            line = Line(_reach(hop, transports[-1] if transports else None))
            transports.append(_open_hop(hop, line, use_agent))
    except BaseException:
        _close_all(transports)
        raise
    return Connection(transports, line)


def _close_all(transports: "list[Transport]") -> None:
    """The far end first."""
    for transport in reversed(transports):
        transport.close()


def _open_hop(hop: Hop, line: Line, use_agent: bool) -> "Transport":
    from paramiko import SSHException, Transport

    try:
        transport = Transport(cast(socket.socket, line))
    except SSHException as error:
        line.close()
        raise UnreachableError(f"{hop} does not answer as SSH: {error}; check the port") from error
    transport.set_log_channel(_LOG_CHANNEL)
    transport.banner_timeout = transport.auth_timeout = hop.connect_s
    transport.channel_timeout = hop.connect_s
    try:
        known = KnownHosts.load(hop.known_hosts)
        _prefer_known_types(transport, {k.key_type for k in known.of(hop.known_as)})
        transport.start_client(timeout=hop.connect_s)
        _check_host_key(hop, known, transport.get_remote_server_key())
        log_in(hop, transport, use_agent=use_agent)
    except (SSHException, OSError, EOFError) as error:
        transport.close()
        raise UnreachableError(f"{hop} broke off while connecting: {_text(error)}") from error
    except BaseException:
        transport.close()
        raise
    return transport


def _reach(hop: Hop, before: "Transport | None") -> Any:
    """A socket, or what paramiko takes for one, that leads to the server."""
    from paramiko import ChannelException, SSHException

    if before is not None:
        way = f"through {before.getpeername()[0]}"
        try:
            return before.open_channel(
                "direct-tcpip", (hop.hostname, hop.port), ("127.0.0.1", 0), timeout=hop.connect_s
            )
        except ChannelException as error:
            raise UnreachableError(
                f"{hop} is unreachable {way}: {error.text}; check the name and that the jump host "
                "allows forwarding (AllowTcpForwarding)"
            ) from error
        except (SSHException, OSError, EOFError) as error:
            raise UnreachableError(f"{hop} is unreachable {way}: {_text(error)}") from error
    if hop.proxy_command is not None:
        return _proxy(hop.proxy_command)
    try:
        sock = socket.create_connection((hop.hostname, hop.port), timeout=hop.connect_s)
    except socket.gaierror as error:
        raise UnreachableError(
            f"{hop}: the name cannot be resolved ({error.strerror}); check its spelling or add it to "
            "~/.ssh/config"
        ) from error
    except OSError as error:
        raise UnreachableError(
            f"{hop} is unreachable: {_text(error)}; check that it is up and that "
            f"`ssh {hop.label}` works from here"
        ) from error
    # Small messages go out at once: Nagle's algorithm would add 40 ms to every call.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _proxy(command: str) -> socket.socket:
    """A socket whose other end is the standard input and output of the user's own ProxyCommand.

    paramiko's own class waits for full buffers and leaves its pipes open.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"], stdin=theirs.fileno(), stdout=theirs.fileno()
        )
    # It ends when our end is closed; somebody has to collect it.
    threading.Thread(target=process.wait, daemon=True, name="ssh-proxy").start()
    return ours


def _prefer_known_types(transport: "Transport", known: set[str]) -> None:
    """Ask first for a key of a type on file, so that another valid key does not look like a change."""
    options = transport.get_security_options()
    wanted = {t for k in known for t in (("rsa-sha2-512", "rsa-sha2-256") if k == "ssh-rsa" else (k,))}
    options.key_types = sorted(options.key_types, key=lambda t: t not in wanted)


def _check_host_key(hop: Hop, known: KnownHosts, key: "PKey") -> None:
    trust = known.judge(hop.known_as, key.asbytes())
    shown = f"{key.get_name()} {fingerprint(key.asbytes())}"
    file = hop.known_hosts[0] if hop.known_hosts else Path("~/.ssh/known_hosts")
    if trust is Trust.CHANGED:
        where = ", ".join(k.where for k in known.of(hop.known_as))
        raise HostError(
            f"THE HOST KEY OF {hop} HAS CHANGED: it shows {shown}, which is not the key in {where}. "
            "Somebody may be in between. If the machine was set up anew, compare the fingerprint with its "
            f"owner, then run: ssh-keygen -f {file} -R '{hop.known_as}'"
        )
    if trust is Trust.REVOKED:
        raise HostError(f"{hop} shows {shown}, which is marked @revoked in known_hosts: do not connect")
    if trust is Trust.KNOWN:
        return
    if hop.accept_new:
        add_known_host(file, hop.known_as, key.get_name(), key.asbytes())
        return
    authority = (
        " (its certificate authority cannot be used here)" if known.has_authority(hop.known_as) else ""
    )
    raise HostError(
        f"the host key of {hop} is not known{authority}: it shows {shown}. Compare it with the "
        "machine's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), then connect once with ssh, or "
        "use --accept-new"
    )


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
