"""One process at a time works on a run.

The lock file in the run's folder names its holder. Whether that holder lives is looked up, not remembered:
on the same boot by pid and start time, from elsewhere by the file's age, which the holder renews. So a
crash, kill -9 or a reboot leaves a lock that the next process takes over. Two processes that ask at the
same moment are kept apart by flock, held only while the file is read and written.
"""

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from moeagent.memory.errors import InputError, TapeError
from moeagent.memory.records.base import Record

LOCK = "lock"
BEAT_S = 15.0
STALE_S = 120.0
"""A holder on another host is gone when it has not renewed the file for this long: eight missed beats."""


class Holder(Record):
    """Who holds a run."""

    host: str
    boot: str
    """Id of the host's boot and of the pid namespace: only there does a pid mean anything."""
    pid: int
    start_time: int
    """Clock ticks since that boot; 0 where the system does not say."""
    since: str

    @classmethod
    def this_process(cls) -> Self:
        """The process that asks."""
        return cls(
            host=socket.gethostname(),
            boot=_boot(),
            pid=os.getpid(),
            start_time=_start_time(os.getpid()) or 0,
            since=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def same(self, other: "Holder") -> bool:
        """Whether both are one process."""
        return (self.boot, self.pid, self.start_time) == (other.boot, other.pid, other.start_time)

    def __str__(self) -> str:
        return f"moeagent process {self.pid} on {self.host} since {self.since}"


class LockState(Record):
    """What a look at the lock showed."""

    holder: Holder | None = None
    """None when nobody holds it, or when the file was cut while it was written."""
    alive: bool = False
    """False for a holder that is gone: its lock may be taken over."""


class RunLock:
    """A held lock; renewed by a thread until it is released."""

    def __init__(self, path: Path, holder: Holder, on_lost: Callable[[], None]) -> None:
        self._path = path
        self._holder = holder
        self._on_lost = on_lost
        self._released = threading.Event()
        self._beat = threading.Thread(target=self._renew, name="run-lock", daemon=True)

    @classmethod
    def acquire(cls, folder: Path, on_lost: Callable[[], None] = lambda: None) -> Self:
        """Take the lock of a run's folder.

        `on_lost` is called, from another thread, when another process has taken the lock over. Raises
        InputError that names a living holder, TapeError when the folder cannot be written.
        """
        path = folder / LOCK
        holder = Holder.this_process()
        with _exclusive(path) as fd:
            state = _state(_read(fd), path)
            if state.holder and state.alive:
                raise InputError(_busy(folder.name, state.holder))
            os.ftruncate(fd, 0)
            os.pwrite(fd, holder.model_dump_json().encode(), 0)
            os.fsync(fd)
        lock = cls(path, holder, on_lost)
        lock._beat.start()
        return lock

    def release(self) -> None:
        """Let the next one in."""
        self._released.set()
        self._beat.join()
        # A folder that was removed or became read-only leaves a lock whose holder is gone.
        with suppress(TapeError), _exclusive(self._path) as fd:
            if self._ours(fd):
                os.ftruncate(fd, 0)

    def _renew(self) -> None:
        while not self._released.wait(BEAT_S):
            with suppress(OSError):
                os.utime(self._path)
                with self._path.open("rb") as file:
                    if not self._ours(file.fileno()):
                        self._on_lost()
                        return

    def _ours(self, fd: int) -> bool:
        holder = _read(fd)
        return holder is not None and holder.same(self._holder)


@contextmanager
def held(folder: Path, on_lost: Callable[[], None] = lambda: None) -> Iterator[RunLock]:
    """Hold the run while the block runs; errors as for `RunLock.acquire`."""
    lock = RunLock.acquire(folder, on_lost)
    try:
        yield lock
    finally:
        lock.release()


def check_free(folder: Path) -> None:
    """Raise InputError while a living process holds the run."""
    state = look(folder)
    if state.holder and state.alive:
        raise InputError(_busy(folder.name, state.holder))


def look(folder: Path) -> LockState:
    """Who holds a run, without touching it."""
    path = folder / LOCK
    try:
        with path.open("rb") as file:
            return _state(_read(file.fileno()), path)
    except OSError:
        return LockState()


@contextmanager
def _exclusive(path: Path) -> Iterator[int]:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise TapeError(_unwritable(path, error)) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    except OSError as error:
        raise TapeError(_unwritable(path, error)) from error
    finally:
        os.close(fd)


def _read(fd: int) -> Holder | None:
    try:
        return Holder.model_validate_json(os.pread(fd, 4096, 0))
    except ValidationError:
        return None


def _state(holder: Holder | None, path: Path) -> LockState:
    if holder is None:
        return LockState()
    if holder.boot == _boot():
        return LockState(holder=holder, alive=_lives(holder))
    rebooted = holder.host == socket.gethostname()
    fresh = time.time() - path.stat().st_mtime < STALE_S
    return LockState(holder=holder, alive=fresh and not rebooted)


def _lives(holder: Holder) -> bool:
    if holder.start_time:
        return _start_time(holder.pid) == holder.start_time
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _boot() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _start_time(pid: int) -> int | None:
    """Field 22 of the process's stat; None when it is gone, or where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _busy(run: str, holder: Holder) -> str:
    return (
        f"{run} is being worked on by {holder}: wait until it ends, or stop it there with "
        f"`kill {holder.pid}` (it stops at a safe point), then `moeagent resume {run}`"
    )


def _unwritable(path: Path, error: OSError) -> str:
    return (
        f"cannot write {path}: {error.strerror}. The run is as it was: `moeagent log`, `report` and `replay` "
        "read it; to go on, make its folder writable or copy it, with room on the disk, and resume the copy"
    )
