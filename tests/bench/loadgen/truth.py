"""The truth server: a C program that streams tokens on a schedule and records when it really sent each."""

import shutil
import socket
import struct
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("truthserver.c")
RECORD = struct.Struct("=6I6Q")
HEADER = struct.Struct("=16Q")
FINISHED, ERROR, STOPPED = 4, 64, 32


@dataclass(frozen=True)
class Sent:
    """One request as the server saw it; nanoseconds of CLOCK_MONOTONIC."""

    first_byte_ns: int
    wanted: int
    flags: int
    token_ns: tuple[int, ...]

    @property
    def complete(self) -> bool:
        """All tokens that were asked for went out, and nothing went wrong."""
        return bool(self.flags & FINISHED) and not self.flags & ERROR and len(self.token_ns) == self.wanted


def compiled(folder: Path) -> Path:
    """The server's binary, made with the system's C compiler."""
    binary = folder / "truthserver"
    if not binary.exists():
        subprocess.run(["cc", "-O2", "-w", "-o", str(binary), str(SOURCE)], check=True)
    return binary


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TruthServer:
    """A running truth server; use it as a context manager."""

    def __init__(self, folder: Path, *, ttft_ms: float, itl_ms: float, prefix: tuple[str, ...] = ()) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [
            *prefix, str(compiled(folder)), "--port", str(self.port),
            "--ttft-us", str(int(ttft_ms * 1000)), "--itl-us", str(int(itl_ms * 1000)),
        ]  # fmt: skip

    def __enter__(self) -> "TruthServer":
        self._process = subprocess.Popen(self._command)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                self.control("stats")
            except OSError:
                time.sleep(0.01)
            else:
                return self
        raise RuntimeError(f"the truth server does not answer: {self._command}")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def control(self, words: str) -> bytes:
        """One control request: reset?KEY=VALUE&..., dump?path=FILE, stats."""
        with urllib.request.urlopen(f"{self.url}/ctl/{words}", timeout=10) as answer:
            return bytes(answer.read())

    def reset(self, **settings: int) -> None:
        """Forget what was sent; fault modes are err_every, stop_every, fail_every, and role, step."""
        faults = {"err_every": 0, "stop_every": 0, "fail_every": 0, "role": 1, "step": 0} | settings
        self.control("reset?" + "&".join(f"{key}={value}" for key, value in faults.items()))

    def sent(self) -> list[Sent]:
        """What was sent since the last reset."""
        dump = self.folder / "dump.bin"
        self.control(f"dump?path={dump}")
        return read_dump(dump.read_bytes())


def read_dump(data: bytes) -> list[Sent]:
    """The records of a dump file."""
    header = HEADER.unpack_from(data)
    records, tokens = header[1], header[2]
    start = HEADER.size + records * RECORD.size
    stamps = struct.unpack_from(f"={tokens}Q", data, start)
    found = []
    for number in range(records):
        fields = RECORD.unpack_from(data, HEADER.size + number * RECORD.size)
        wanted, sent, flags, first_byte, offset = fields[3], fields[4], fields[5], fields[6], fields[9]
        found.append(Sent(first_byte, wanted, flags, stamps[offset : offset + sent]))
    return found


def can_be_realtime() -> bool:
    """Whether this user may run a process in a real-time class."""
    if shutil.which("chrt") is None:
        return False
    return subprocess.run(["chrt", "-f", "10", "true"], capture_output=True, check=False).returncode == 0
