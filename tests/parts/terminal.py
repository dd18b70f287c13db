"""A program on a terminal of its own, as a person sees it."""

import os
import pty
import re
import select
import struct
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.command import MOEAGENT, environment


class Terminal:
    """moeagent on a pseudo-terminal of a given size."""

    def __init__(
        self, folder: Path, *arguments: str, columns: int = 100, rows: int = 30, **extra: str
    ) -> None:
        env = environment(
            folder, COLUMNS=str(columns), LINES=str(rows), **{"TERM": "xterm-256color", **extra}
        )
        if "NO_COLOR" not in extra:
            del env["NO_COLOR"]
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execve(sys.executable, [*MOEAGENT, *arguments], env)
        ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._fd, keys.encode())

    def until(self, text: str, timeout_s: float = 60.0) -> str:
        """Read until the program has shown this; everything that it has shown so far."""
        deadline = time.monotonic() + timeout_s
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} was not shown:\n{self.seen[-3000:]}"
            assert self._read(), f"the program ended before it showed {text!r}:\n{self.seen[-3000:]}"
        return self.seen

    @property
    def plain(self) -> str:
        """Everything that it has shown, without styles."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.seen)

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            continue
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self) -> bool:
        if not select.select([self._fd], [], [], 1.0)[0]:
            return True
        try:
            piece = os.read(self._fd, 65536)
        except OSError:  # Linux says EIO when the other side is closed.
            return False
        self.seen += piece.decode("utf-8", "replace")
        return bool(piece)
