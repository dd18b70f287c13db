"""One process at a time works on a run; a lock never outlives its holder."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from moeagent.memory.errors import InputError
from moeagent.memory.lock import LOCK, STALE_S, Holder, RunLock, check_free, held, look

HOLD = """
import sys
from pathlib import Path
from moeagent.memory.lock import RunLock
RunLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def holding(folder: Path) -> "subprocess.Popen[str]":
    """Another process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    process.send_signal(number)
    process.communicate()


def test_a_second_process_is_refused_with_who_holds_it_and_what_to_do(tmp_path: Path) -> None:
    process = holding(tmp_path)
    try:
        with pytest.raises(InputError, match=rf"process {process.pid} on .* since 20.*kill {process.pid}"):
            RunLock.acquire(tmp_path)
        with pytest.raises(InputError, match=r"moeagent resume"):
            check_free(tmp_path)
    finally:
        end(process, signal.SIGTERM)


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    process = holding(tmp_path)
    end(process, signal.SIGKILL)
    state = look(tmp_path)
    assert state.holder is not None
    assert state.holder.pid == process.pid
    assert not state.alive
    with held(tmp_path):
        assert look(tmp_path).alive
    assert look(tmp_path).holder is None


def written(folder: Path, **changes: object) -> None:
    holder = Holder.this_process().model_copy(update=changes)
    (folder / LOCK).write_text(holder.model_dump_json())


def test_a_recycled_pid_is_not_the_holder(tmp_path: Path) -> None:
    written(tmp_path, start_time=Holder.this_process().start_time - 1)
    with held(tmp_path):
        pass


def test_a_reboot_of_this_host_leaves_a_stale_lock(tmp_path: Path) -> None:
    written(tmp_path, boot="an earlier boot")
    with held(tmp_path):
        pass


def test_a_holder_on_another_host_is_alive_while_it_renews_the_file(tmp_path: Path) -> None:
    written(tmp_path, boot="their boot", host="gpu7")
    with pytest.raises(InputError, match="on gpu7"):
        RunLock.acquire(tmp_path)
    past = (tmp_path / LOCK).stat().st_mtime - STALE_S - 1
    os.utime(tmp_path / LOCK, (past, past))
    with held(tmp_path):
        pass


@pytest.mark.parametrize("content", [b"", b"{", b'{"host": 3}', b"\xff\x00"])
def test_a_lock_that_was_cut_while_it_was_written_holds_nobody(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LOCK).write_bytes(content)
    with held(tmp_path):
        assert look(tmp_path).alive


def test_the_holder_learns_that_another_took_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moeagent.memory.lock.BEAT_S", 0.01)
    lost = threading.Event()
    with held(tmp_path, lost.set):
        written(tmp_path, pid=1)
        assert lost.wait(30)
    state = look(tmp_path)
    assert state.holder is not None
    assert state.holder.pid == 1, "a lock that is another's is not released"


def _try(
    folder: str, barrier: "multiprocessing.synchronize.Barrier", won: "multiprocessing.Queue[int]"
) -> None:
    barrier.wait()
    try:
        RunLock.acquire(Path(folder))
        won.put(1)
    except InputError:
        won.put(0)
    barrier.wait()


def test_of_many_that_ask_at_the_same_moment_one_gets_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, won = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_try, args=(str(tmp_path), barrier, won)) for _ in range(4)]
    for worker in workers:
        worker.start()
    assert sorted(won.get(timeout=60) for _ in workers) == [0, 0, 0, 1]
    for worker in workers:
        worker.join()
