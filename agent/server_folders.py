"""Where a run keeps its servers' files on the host: RUN/LAUNCH below moeagent's folder, one per start."""

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.protocol import Host

LOG_HEAD = 4 << 20
LOG_TAIL = 12 << 20
"""A log that is longer than both together is kept with its middle left out."""
RETIRED = "retired"
_TIMEOUT_S = 60.0


class ServerFolders:
    """The folders of one run; a start that was stopped is marked as retired, and the next gets a new one."""

    def __init__(self, host: Host, folder: str, run: str) -> None:
        self._host, self._folder, self._run = host, folder, run
        self._root = ""

    def current(self, launch: str) -> str:
        """The folder of the launch's latest start that was not stopped, or a new one."""
        base, number = self._base(launch), 0
        while self._exists(f"{_numbered(base, number)}/{RETIRED}"):
            number += 1
        return _numbered(base, number)

    def last(self, launch: str) -> str:
        """The folder of the launch's last start, stopped or not."""
        base, number = self._base(launch), 0
        while self._exists(f"{_numbered(base, number + 1)}/port"):
            number += 1
        return _numbered(base, number)

    def write_port(self, folder: str, port: int) -> None:
        """Note the port before the start."""
        self._host.put(f"{folder}/port", f"{port}\n".encode())

    def port_of(self, folder: str) -> int:
        """The port that was noted."""
        return int(self._host.read(f"{folder}/port"))

    def retire(self, folder: str) -> None:
        """Its server is gone: the next start gets a folder of its own."""
        self._host.put(f"{folder}/{RETIRED}", b"")

    def log(self, folder: str) -> str:
        """The whole log; where it is very long, its middle is left out. Empty where there is none."""
        path = f"{folder}/server.log"
        try:
            head = self._host.read(path, limit=LOG_HEAD + LOG_TAIL)
            if len(head) < LOG_HEAD + LOG_TAIL:
                return _text(head)
            size = int(self._run_text("sh", "-c", 'wc -c < "$1"', "sh", path))
            tail = self._host.read(path, offset=max(LOG_HEAD, size - LOG_TAIL))
        except RemoteError:
            raise
        except HostError:
            return ""
        left_out = max(0, size - LOG_TAIL - LOG_HEAD)
        return f"{_text(head[:LOG_HEAD])}\n[moeagent: {left_out} bytes left out]\n{_text(tail)}"

    def _base(self, launch: str) -> str:
        if not self._root:
            home = self._run_text("sh", "-c", 'printf %s "$HOME"') if self._folder.startswith("~") else ""
            self._root = home + self._folder.removeprefix("~")
        return f"{self._root}/{self._run}/{launch}"

    def _exists(self, path: str) -> bool:
        return self._host.run(Command(("test", "-e", path), repeatable=True), timeout_s=_TIMEOUT_S).ok

    def _run_text(self, *argv: str) -> str:
        result = self._host.run(Command(argv, repeatable=True), timeout_s=_TIMEOUT_S)
        if not result.ok:
            raise HostError(
                f"{self._host.name}: {argv[0]} failed: {result.stderr.decode('utf-8', 'replace')}"
            )
        return result.text.strip()


def _numbered(base: str, number: int) -> str:
    return base if number == 0 else f"{base}.{number}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
