"""Where an SSH destination leads: OpenSSH's configuration, as far as paramiko reads it."""

import getpass
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from moeagent.memory.errors import InputError
from moeagent.tools.hosts.ssh_settings import SshSettings

_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_MAX_HOPS = 8
_MAX_INCLUDES = 16
_BLOCK = re.compile(r"\s*(host|match)\b", re.IGNORECASE)
_INCLUDE = re.compile(r"\s*include(?:\s*=\s*|\s+)(.+)", re.IGNORECASE)
_TIME = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")
# No character that a shell reads: a ProxyCommand may hold host and user.
_DESTINATION = re.compile(
    r"(?:(?P<user>\w[\w.+-]*)@)?(?:\[(?P<v6>[0-9a-fA-F:.%]+)\]|(?P<host>\w[\w.%+-]*))(?::(?P<port>\d+))?",
    re.ASCII,
)

UNSUPPORTED = {
    "identityagent": "start the agent's socket as SSH_AUTH_SOCK instead",
    "pkcs11provider": "load the token into ssh-agent (`ssh-add -s`) instead",
    "knownhostscommand": "write its keys into a file named by UserKnownHostsFile instead",
}
"""Settings that would change who is asked or trusted and that paramiko cannot follow, with the way out."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One SSH server on the way, with everything needed to reach and trust it."""

    label: str
    """As the user wrote it."""
    hostname: str
    port: int
    user: str
    key_files: tuple[Path, ...]
    certificates: tuple[Path, ...]
    identities_only: bool
    known_hosts: tuple[Path, ...]
    """The first is the one that accepted keys are added to."""
    known_as: str
    """The name that known_hosts has it under."""
    accept_new: bool
    proxy_command: str | None
    connect_s: float
    """For each of: reaching the server, agreeing on keys, logging in."""
    keepalive_s: float
    """Between two signs of life asked of the server."""
    dead_after_s: float
    """Without an answer for this long the connection counts as lost."""

    def __str__(self) -> str:
        place = f"{self.hostname}:{self.port}"
        return place if self.label in (self.hostname, place) else f"{self.label} ({place})"


def resolve(spec: str, settings: SshSettings) -> tuple[Hop, ...]:
    """The servers to pass through, the destination last.

    Raises InputError for a configuration that cannot be read or asks for what paramiko cannot do.
    """
    return _resolve(spec, settings, _options_of(settings), depth=0)


def expand_includes(path: Path, home: Path, depth: int = 0) -> str:
    """The text of a configuration with its `Include` files in place.

    An included file that opens `Host` or `Match` blocks may only be included outside of such a block, where
    what follows the `Include` goes on to apply to every host, as with OpenSSH.
    """
    if depth > _MAX_INCLUDES:
        raise InputError(f"{path}: Include nested more than {_MAX_INCLUDES} deep: it includes itself?")
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the SSH configuration {path}: {error}") from error
    expanded: list[str] = []
    in_block = False
    for line in lines:
        match = _INCLUDE.fullmatch(line)
        in_block = in_block or bool(_BLOCK.match(line))
        if match is None:
            expanded.append(line)
            continue
        included = [expand_includes(f, home, depth + 1) for f in _included(match[1], home)]
        has_blocks = any(_BLOCK.match(inner) for text in included for inner in text.splitlines())
        if has_blocks and in_block:
            raise InputError(
                f"{path}: `{line.strip()}` inside a Host or Match block includes further blocks, which is "
                "not supported: move the Include to the top of the file"
            )
        expanded += included + (["Host *"] if has_blocks else [])
    return "\n".join(expanded)


def _included(patterns: str, home: Path) -> Iterator[Path]:
    for pattern in patterns.replace('"', "").split():
        full = Path(pattern.replace("~", str(home), 1) if pattern.startswith("~/") else pattern)
        base = full if full.is_absolute() else home / ".ssh" / full
        yield from sorted(Path("/").glob(str(base.relative_to("/"))))


class _Options:
    """Look-ups in one configuration."""

    def __init__(self, text: str, origin: Path) -> None:
        self._text = text
        self._origin = origin

    def of(self, name: str, given: Mapping[str, str | None]) -> Mapping[str, str | list[str]]:
        """Settings of a host; what was given with its name stands first and so wins, as with OpenSSH."""
        from paramiko import SSHConfig
        from paramiko.ssh_exception import ConfigParseError, CouldNotCanonicalize

        first = "".join(f"{key} {value}\n" for key, value in given.items() if value)
        try:
            return SSHConfig.from_text(first + self._text).lookup(name)
        except ConfigParseError as error:
            raise InputError(f"{self._origin}: {error}; mend that line") from error
        except (CouldNotCanonicalize, KeyError, ValueError) as error:
            raise InputError(
                f"{self._origin}: cannot work out the settings of {name} ({error}): name the host in full, "
                "or give another file with --ssh-config"
            ) from error


def _options_of(settings: SshSettings) -> _Options:
    path = settings.config_file or settings.home / ".ssh" / "config"
    if settings.config_file is None and not path.exists():
        return _Options("", path)
    return _Options(expand_includes(path, settings.home), path)


def _resolve(spec: str, settings: SshSettings, options: _Options, depth: int) -> tuple[Hop, ...]:
    if depth > _MAX_HOPS:
        raise InputError(f"host {spec}: more than {_MAX_HOPS} jumps: a ProxyJump leads back to itself?")
    match = _DESTINATION.fullmatch(spec)
    if match is None:
        raise InputError(f"host {spec!r}: write user@host[:port] or a name of the SSH configuration")
    name = match["v6"] or match["host"]
    found = options.of(name, {"User": match["user"], "Port": match["port"]})
    hop = _hop(spec, name, found, settings)
    jumps = [j.strip() for j in str(found.get("proxyjump", "none")).split(",")]
    if jumps == ["none"]:
        return (hop,)
    way = _resolve(jumps[0].removeprefix("ssh://"), settings, options, depth + 1)
    for jump in jumps[1:]:
        # Only the first jump may have a way of its own; the others are reached through the one before.
        inner = _resolve(jump.removeprefix("ssh://"), settings, options, depth + 1)[-1]
        way += (replace(inner, proxy_command=None),)
    return (*way, replace(hop, proxy_command=None))


def _hop(spec: str, name: str, found: Mapping[str, str | list[str]], settings: SshSettings) -> Hop:
    for setting, way_out in UNSUPPORTED.items():
        if str(found.get(setting, "none")).lower() not in ("none", "ssh_auth_sock"):
            raise InputError(f"host {spec}: {setting} of the SSH configuration is not supported: {way_out}")
    hostname, port = str(found.get("hostname", name)), _port(spec, found)
    command = found.get("proxycommand")
    every_s = _seconds(spec, found, "serveraliveinterval")
    return Hop(
        label=spec,
        hostname=hostname,
        port=port,
        user=str(found.get("user", getpass.getuser())),
        key_files=settings.key_files + _key_files(found, settings.home),
        certificates=_paths(found.get("certificatefile"), settings.home),
        identities_only=str(found.get("identitiesonly", "no")).lower() == "yes",
        known_hosts=settings.known_hosts or _known_hosts(found, settings.home),
        known_as=str(found.get("hostkeyalias") or _known_as(hostname, port)),
        accept_new=settings.accept_new or found.get("stricthostkeychecking") == "accept-new",
        proxy_command=str(command) if command else None,
        connect_s=_seconds(spec, found, "connecttimeout") or settings.connect_s,
        keepalive_s=every_s or settings.keepalive_s,
        dead_after_s=every_s * _patience(spec, found) or settings.dead_after_s,
    )


def _seconds(spec: str, found: Mapping[str, str | list[str]], setting: str) -> float:
    """A time as OpenSSH writes it (90, 90s, 1m30s, 2h); 0 where it is not set."""
    text = str(found.get(setting, "0"))
    match = _TIME.fullmatch(text.lower())
    if match is None or not text:
        raise InputError(f"host {spec}: {setting} {text!r} of the SSH configuration is not a time in seconds")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds


def _patience(spec: str, found: Mapping[str, str | list[str]]) -> int:
    """How many signs of life may stay unanswered; 3 as with OpenSSH."""
    text = str(found.get("serveralivecountmax", "3"))
    if not text.isdigit():
        raise InputError(
            f"host {spec}: ServerAliveCountMax {text!r} of the SSH configuration is not a number"
        )
    return max(1, int(text))


def _port(spec: str, found: Mapping[str, str | list[str]]) -> int:
    text = str(found.get("port", "22"))
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise InputError(f"host {spec}: port {text!r} of the SSH configuration is not a port number")
    return int(text)


def _known_as(hostname: str, port: int) -> str:
    return hostname.lower() if port == 22 else f"[{hostname.lower()}]:{port}"


def _key_files(found: Mapping[str, str | list[str]], home: Path) -> tuple[Path, ...]:
    if "identityfile" in found:
        return _paths(found["identityfile"], home)
    return tuple(home / ".ssh" / name for name in _DEFAULT_KEYS)


def _known_hosts(found: Mapping[str, str | list[str]], home: Path) -> tuple[Path, ...]:
    own = _paths(str(found.get("userknownhostsfile", "~/.ssh/known_hosts")).split(), home)
    everyone = _paths(str(found.get("globalknownhostsfile", "/etc/ssh/ssh_known_hosts")).split(), home)
    return own + everyone


def _paths(value: str | list[str] | None, home: Path) -> tuple[Path, ...]:
    names = [value] if isinstance(value, str) else value or []
    return tuple(
        home / name[2:] if name.startswith("~/") else Path(name) for name in names if name.lower() != "none"
    )
