"""Reaching an SSH server over any number of hops: trust its key, log in, or say what to do."""

import logging
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.known_hosts import KnownHosts, Trust, add_known_host, fingerprint, parse_known_hosts
from moeagent.tools.hosts.ssh_config import Hop
from moeagent.tools.hosts.ssh_settings import SshSettings

if TYPE_CHECKING:
    from paramiko import Agent, PKey, Transport

_LOG_CHANNEL = "moeagent.paramiko"


class UnreachableError(RemoteError):
    """The server did not answer or the connection broke: worth another try."""


class Connection:
    """Transports through all hops; the last one is the host's."""

    def __init__(self, transports: "list[Transport]") -> None:
        self._transports = transports

    @property
    def transport(self) -> "Transport":
        """The one that ends at the host."""
        return self._transports[-1]

    def alive(self) -> bool:
        """False as soon as any part of the way is known to be cut."""
        return all(t.is_active() for t in self._transports)

    def close(self) -> None:
        """Close the whole way, the far end first."""
        for transport in reversed(self._transports):
            transport.close()


def connect(hops: tuple[Hop, ...], settings: SshSettings) -> Connection:
    """Open the whole way. Raises UnreachableError where another try may help, else HostError."""
    # paramiko reports to its log what is raised here as well; without a handler it would reach stderr.
    logging.getLogger(_LOG_CHANNEL).addHandler(logging.NullHandler())
    transports: list[Transport] = []
    try:
        for hop in hops:
            transports.append(_open_hop(hop, transports[-1] if transports else None, settings))
    except BaseException:
        Connection(transports).close()
        raise
    return Connection(transports)


def _open_hop(hop: Hop, before: "Transport | None", settings: SshSettings) -> "Transport":
    from paramiko import SSHException, Transport

    sock = _reach(hop, before, settings)
    try:
        transport = Transport(sock)
    except SSHException as error:
        sock.close()
        raise UnreachableError(f"{_at(hop)} does not answer as SSH: {error}; check the port") from error
    transport.set_log_channel(_LOG_CHANNEL)
    transport.banner_timeout = transport.auth_timeout = settings.connect_s
    transport.channel_timeout = settings.connect_s
    try:
        known = KnownHosts.load(hop.known_hosts)
        _prefer_known_types(transport, {k.key_type for k in known.of(hop.known_as)})
        transport.start_client(timeout=settings.connect_s)
        _check_host_key(hop, known, transport.get_remote_server_key())
        _log_in(hop, transport, settings)
    except (SSHException, OSError, EOFError) as error:
        transport.close()
        raise UnreachableError(f"{_at(hop)} broke off while connecting: {_text(error)}") from error
    except BaseException:
        transport.close()
        raise
    return transport


def _reach(hop: Hop, before: "Transport | None", settings: SshSettings) -> Any:
    """A socket, or what paramiko takes for one, that leads to the server."""
    from paramiko import ChannelException, SSHException

    if before is not None:
        way = f"through {before.getpeername()[0]}"
        try:
            return before.open_channel(
                "direct-tcpip", (hop.hostname, hop.port), ("127.0.0.1", 0), timeout=settings.connect_s
            )
        except ChannelException as error:
            raise UnreachableError(
                f"{_at(hop)} is unreachable {way}: {error.text}; check the name and that the jump host "
                "allows forwarding (AllowTcpForwarding)"
            ) from error
        except (SSHException, OSError, EOFError) as error:
            raise UnreachableError(f"{_at(hop)} is unreachable {way}: {_text(error)}") from error
    if hop.proxy_command is not None:
        return _proxy(hop.proxy_command)
    try:
        sock = socket.create_connection((hop.hostname, hop.port), timeout=settings.connect_s)
    except socket.gaierror as error:
        raise UnreachableError(
            f"{_at(hop)}: the name cannot be resolved ({error.strerror}); check its spelling or add it to "
            "~/.ssh/config"
        ) from error
    except OSError as error:
        raise UnreachableError(
            f"{_at(hop)} is unreachable: {_text(error)}; check that it is up and that "
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
            f"THE HOST KEY OF {_at(hop)} HAS CHANGED: it shows {shown}, which is not the key in {where}. "
            "Somebody may be in between. If the machine was set up anew, compare the fingerprint with its "
            f"owner, then run: ssh-keygen -f {file} -R '{hop.known_as}'"
        )
    if trust is Trust.REVOKED:
        raise HostError(f"{_at(hop)} shows {shown}, which is marked @revoked in known_hosts: do not connect")
    if trust is Trust.KNOWN:
        return
    if hop.accept_new:
        add_known_host(file, hop.known_as, key.get_name(), key.asbytes())
        return
    authority = (
        " (its certificate authority cannot be used here)" if known.has_authority(hop.known_as) else ""
    )
    raise HostError(
        f"the host key of {_at(hop)} is not known{authority}: it shows {shown}. Compare it with the "
        "machine's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), then connect once with ssh, or "
        "use --accept-new-host-key"
    )


def _log_in(hop: Hop, transport: "Transport", settings: SshSettings) -> None:
    """Offer the keys of files and agent. Raises HostError naming what was offered."""
    from paramiko import Agent

    agent = Agent() if settings.use_agent else None
    try:
        _offer_keys(hop, transport, agent)
    finally:
        if agent is not None:
            agent.close()


def _offer_keys(hop: Hop, transport: "Transport", agent: "Agent | None") -> None:
    from paramiko import AuthenticationException, BadAuthenticationType

    tried: list[str] = []
    for label, key in _keys(hop, agent, tried):
        try:
            more = transport.auth_publickey(hop.user, key)
        except BadAuthenticationType as error:
            raise HostError(
                f"{hop.user}@{_at(hop)} takes no keys, only {', '.join(error.allowed_types)}: put a public "
                "key into its ~/.ssh/authorized_keys and allow PubkeyAuthentication"
            ) from error
        except AuthenticationException:
            tried.append(f"{label} (refused)")
            if not transport.is_active():
                break
            continue
        if not more:
            return
        raise HostError(
            f"{hop.user}@{_at(hop)} asks for a second factor ({', '.join(more)}), which is not supported: "
            "use an account with key log-in only"
        )
    offered = "; ".join(tried) or "no key was found"
    raise HostError(
        f"{hop.user}@{_at(hop)} refused the log-in. Tried: {offered}. Check the user name, add the key with "
        f"ssh-add or IdentityFile, and its public half to ~/.ssh/authorized_keys of {hop.user}"
    )


def _keys(hop: Hop, agent: "Agent | None", tried: list[str]) -> "Iterator[tuple[str, PKey]]":
    """Keys in the order of trial; files that cannot be used are noted in `tried`.

    Configured keys come first, whoever holds them: a server allows few attempts.
    """
    files = [f for f in hop.key_files if f.is_file()]
    configured = {_public_blob(f) for f in files}
    held = agent.get_keys() if agent is not None else ()
    in_agent = [(f"agent key {key.comment or key.get_name()}", key) for key in held]
    yield from ((label, key) for label, key in in_agent if key.asbytes() in configured)
    for file in files:
        key, why_not = _load(file, hop.certificates)
        if key is None:
            tried.append(f"{file} ({why_not})")
        else:
            yield str(file), key
    if not hop.identities_only:
        yield from ((label, key) for label, key in in_agent if key.asbytes() not in configured)


def _load(file: Path, certificates: tuple[Path, ...]) -> "tuple[PKey | None, str]":
    """A private key with its certificate (FILE-cert.pub, or a CertificateFile made for it), or why not."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from paramiko import PKey, SSHException
    from paramiko.pkey import PublicBlob, UnknownKeyType

    try:
        key = PKey.from_path(file)
    except TypeError:
        return None, "needs a passphrase: run ssh-add"
    except OSError as error:
        return None, error.strerror or "cannot be read"
    except (ValueError, SSHException, UnknownKeyType, UnsupportedAlgorithm):
        return None, "not a private key of a supported type"
    numbers = key.asbytes()[4 + len(key.get_name()) :]
    for certificate in certificates:
        with suppress(ValueError, OSError):
            if numbers in PublicBlob.from_file(str(certificate)).key_blob:
                key.load_certificate(str(certificate))
    return key, ""


def _public_blob(file: Path) -> bytes | None:
    """The public key beside a private one, or in the file itself."""
    for path in (file.with_name(file.name + ".pub"), file):
        with suppress(OSError, UnicodeDecodeError):
            for line in parse_known_hosts("* " + path.read_text("utf-8").strip(), str(path)):
                return line.blob
    return None


def _at(hop: Hop) -> str:
    place = f"{hop.hostname}:{hop.port}"
    return place if hop.label == hop.hostname else f"{hop.label} ({place})"


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
