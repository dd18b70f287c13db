"""A real OpenSSH server on loopback, with its own port, host keys, user keys and files.

It runs as the current user; its accounts are this user's. `home` stands in for the client's ~/.ssh.
"""

import os
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from moeagent.tools.hosts.ssh_settings import SshSettings

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"

_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
PidFile {folder}/sshd.pid
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxSessions 64
MaxStartups 100
LogLevel ERROR
SetEnv SHLVL=2
"""
# SHLVL: bash reads the user's .bashrc, which may be slow, when it is the first shell of an SSH session.


@dataclass
class Sshd:
    """The server and what a client needs to use it."""

    folder: Path
    extra: str = ""
    """More lines for sshd_config; the first value of a setting counts, so these win."""
    host_key_type: str = "ed25519"
    port: int = 0
    boot_id: str = ""
    """What the host's users see as the id of its boot, from the next start on; the real one if empty."""
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        make_key(self.folder / "host_key", self.host_key_type)
        make_key(self.user_key)
        shutil.copy(self.user_key.with_suffix(".pub"), self.folder / "authorized_keys")
        self.port = self.port or free_port()
        self.trust(self.home / ".ssh" / "known_hosts")

    @property
    def user_key(self) -> Path:
        """The key that may log in."""
        return self.folder / "user_key"

    @property
    def home(self) -> Path:
        """The client's home, with known_hosts in .ssh."""
        return self.folder / "home"

    @property
    def spec(self) -> str:
        """The destination as a user writes it."""
        return f"127.0.0.1:{self.port}"

    def trust(self, known_hosts: Path) -> None:
        """Add the server's key to a client's file."""
        known_hosts.parent.mkdir(parents=True, exist_ok=True)
        key = (self.folder / "host_key.pub").read_text().split()
        with known_hosts.open("a") as file:
            file.write(f"[127.0.0.1]:{self.port} {key[0]} {key[1]}\n")

    def settings(self, **changes: object) -> SshSettings:
        """Settings with which the log-in works, quick enough for a test."""
        defaults: dict[str, object] = {
            "key_files": (self.user_key,),
            "home": self.home,
            "use_agent": False,
            "known_hosts": (self.home / ".ssh" / "known_hosts",),
            "connect_s": 10.0,
            "reconnect_s": 20.0,
        }
        return SshSettings(**{**defaults, **changes})  # type: ignore[arg-type]

    def start(self) -> "Sshd":
        """Start and wait until it listens."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text(self.extra + "\n" + _CONFIG.format(port=self.port, folder=self.folder))
        log = self.folder / "sshd.log"
        argv = [SSHD, "-D", "-f", str(config), "-E", str(log)]
        self._process = subprocess.Popen(self._booted(argv) if self.boot_id else argv)
        self._wait_for_pid_file(log)
        return self

    def stop(self) -> None:
        """Kill the server with every connection it holds; what users started goes on."""
        process, self._process = self._process, None
        if process is None:
            return
        connections = [pid for pid in descendants(process.pid) if name_of(pid).startswith("sshd")]
        for pid in [process.pid, *connections]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
        (self.folder / "sshd.pid").unlink(missing_ok=True)

    def _booted(self, argv: list[str]) -> list[str]:
        """The same in a mount namespace of its own, in which another boot id lies over the kernel's."""
        file = self.folder / "boot_id"
        file.write_text(f"{self.boot_id}\n")
        hide = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
        return ["unshare", "-m", "sh", "-c", hide, str(file), *argv]

    def _wait_for_pid_file(self, log: Path) -> None:
        # sshd writes the file when it listens.
        assert self._process is not None
        while not (self.folder / "sshd.pid").exists():
            try:
                code = self._process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError(f"sshd ended with {code}: {log.read_text() if log.exists() else 'no log'}")


def make_key(path: Path, key_type: str = "ed25519", passphrase: str = "") -> Path:
    """A new key pair at PATH and PATH.pub."""
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", key_type, "-N", passphrase, "-f", str(path)], check=True)
    return path


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def descendants(root: int) -> list[int]:
    """All children of a process and theirs, from /proc."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def name_of(pid: int) -> str:
    """The name of a process; empty when it has ended, though nobody may have collected it yet."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")
    except OSError:
        return ""
    return "" if rest[0] in "ZX" else name.partition("(")[2]
