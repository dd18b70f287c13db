"""Logging in with the keys of files and agent."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from moeagent.memory.errors import HostError
from moeagent.tools.hosts.known_hosts import parse_known_hosts
from moeagent.tools.hosts.ssh_config import Hop

if TYPE_CHECKING:
    from paramiko import Agent, PKey, Transport


def log_in(hop: Hop, transport: "Transport", *, use_agent: bool) -> None:
    """Offer the keys of files and agent.

    Raises HostError naming what was offered, SSHException when the server ended the connection meanwhile.
    """
    from paramiko import Agent

    agent = Agent() if use_agent else None
    try:
        _offer_keys(hop, transport, agent)
    finally:
        if agent is not None:
            agent.close()


def _offer_keys(hop: Hop, transport: "Transport", agent: "Agent | None") -> None:
    from paramiko import AuthenticationException, BadAuthenticationType, SSHException

    tried: list[str] = []
    for label, key in _keys(hop, agent, tried):
        try:
            more = transport.auth_publickey(hop.user, key)
        except BadAuthenticationType as error:
            raise HostError(
                f"{hop} takes no keys from {hop.user}, only {', '.join(error.allowed_types)}: put a public "
                "key into its ~/.ssh/authorized_keys and allow PubkeyAuthentication"
            ) from error
        except AuthenticationException as error:
            tried.append(f"{label} (refused)")
            if not transport.is_active():
                # Killed or overloaded, it may take the same key a moment later.
                raise SSHException(
                    f"the server ended the log-in. Tried: {'; '.join(tried)}. If it allows fewer tries than "
                    "there are keys, name the right one with IdentityFile and set IdentitiesOnly"
                ) from error
            continue
        if not more:
            return
        raise HostError(
            f"{hop} asks {hop.user} for a second factor ({', '.join(more)}), which is not supported: "
            "use an account with key log-in only"
        )
    offered = "; ".join(tried) or "no key was found"
    raise HostError(
        f"{hop} refused the log-in as {hop.user}. Tried: {offered}. Check the user name, add the key with "
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
