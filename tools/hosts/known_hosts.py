"""OpenSSH's known_hosts files: who a server must prove to be.

paramiko's own reader stops at lines with markers, knows no patterns and one key of a type per host.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path


class Trust(StrEnum):
    """What the files say about a server's key."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One line of a file."""

    names: str
    key_type: str
    blob: bytes
    marker: str
    where: str
    """file:line"""

    def is_for(self, name: str) -> bool:
        """Whether the line speaks of this host, given as `host` or `[host]:port`."""
        verdict = False
        for pattern in self.names.split(","):
            if pattern.startswith("|1|"):
                verdict = verdict or _hashed_match(pattern, name)
            elif pattern.startswith("!") and fnmatchcase(name, _literal_brackets(pattern[1:])):
                return False
            elif fnmatchcase(name, _literal_brackets(pattern)):
                verdict = True
        return verdict


class KnownHosts:
    """The lines of several files."""

    def __init__(self, keys: Iterable[KnownKey]) -> None:
        self._keys = tuple(keys)

    @classmethod
    def load(cls, files: Iterable[Path]) -> "KnownHosts":
        """Read the files that exist; lines that no key can be read from are passed over, as OpenSSH does."""
        keys: list[KnownKey] = []
        for file in files:
            if file.is_file():
                keys += parse_known_hosts(file.read_text("utf-8", "replace"), str(file))
        return cls(keys)

    def of(self, name: str) -> tuple[KnownKey, ...]:
        """The plain keys of a host: neither revoked ones nor certificate authorities."""
        return tuple(k for k in self._keys if not k.marker and k.is_for(name))

    def has_authority(self, name: str) -> bool:
        """True when the host is known through a certificate authority, which paramiko cannot check."""
        return any(k.marker == "@cert-authority" and k.is_for(name) for k in self._keys)

    def judge(self, name: str, blob: bytes) -> Trust:
        """What the files say about a host that shows this key."""
        if any(k.marker == "@revoked" and k.blob == blob for k in self._keys):
            return Trust.REVOKED
        known = self.of(name)
        if any(k.blob == blob for k in known):
            return Trust.KNOWN
        return Trust.CHANGED if known else Trust.UNKNOWN


def parse_known_hosts(text: str, origin: str) -> list[KnownKey]:
    """The keys of a known_hosts file."""
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#"):
            continue
        try:
            blob = base64.b64decode(fields[2], validate=True)
        except binascii.Error:
            continue
        keys.append(KnownKey(fields[0], fields[1], blob, marker, f"{origin}:{number}"))
    return keys


def add_known_host(file: Path, name: str, key_type: str, blob: bytes) -> None:
    """Append a key, making the file with private modes where it is missing."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = not file.exists()
    if new:
        file.touch(mode=0o600)
    joined = "" if new or file.read_bytes()[-1:] in (b"", b"\n") else "\n"
    with file.open("a", encoding="utf-8") as out:
        out.write(f"{joined}{name} {key_type} {base64.b64encode(blob).decode()}\n")


def fingerprint(blob: bytes) -> str:
    """A key as OpenSSH shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _hashed_match(pattern: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in pattern.split("|")[2:4])
    except (ValueError, binascii.Error):
        return False
    # SHA-1 is the format of HashKnownHosts; it hides names, it does not protect keys.
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), digest)


def _literal_brackets(pattern: str) -> str:
    """Square brackets stand for themselves: [host]:2222."""
    return pattern.lower().replace("[", "[[]")
