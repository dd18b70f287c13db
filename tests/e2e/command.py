"""Running moeagent as a user does: a process of its own, in a folder of its own."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MOEAGENT = (sys.executable, "-m", "moeagent.agent")
TIMEOUT_S = 240.0


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """A home and a place for temporary files of its own, no colours, no settings from outside."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MOEAGENT_", "OPENAI_"))}
    return {
        **kept,
        "HOME": str(folder),
        "TMPDIR": str(temporary),
        "COLUMNS": "160",
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "error",
        **extra,
    }


def moeagent(
    folder: Path, *arguments: str, code: int = 0, timeout_s: float = TIMEOUT_S, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and check its exit code."""
    done = subprocess.run(
        [*MOEAGENT, *arguments],
        cwd=folder,
        env=environment(folder, **extra),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


def moeagent_json(folder: Path, *arguments: str, code: int = 0, **extra: str) -> Any:
    """The JSON object that a command prints."""
    return json.loads(moeagent(folder, *arguments, "--json", code=code, **extra).stdout)


def start(folder: Path, *arguments: str, **extra: str) -> subprocess.Popen[str]:
    """Start a command that will be disturbed."""
    return subprocess.Popen(
        [*MOEAGENT, *arguments],
        cwd=folder,
        env=environment(folder, **extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Poll until something that another process does has happened."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in {timeout_s:g} s"
        time.sleep(0.02)


def tape_lines(folder: Path, run: str) -> list[dict[str, Any]]:
    """The bodies of a run's tape, sound lines only."""
    path = folder / "runs" / run / "tape.jsonl"
    if not path.exists():
        return []
    whole = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line.partition(b" ")[2]) for line in whole]


def kinds(folder: Path, run: str) -> list[str]:
    """Kinds of the requests on a run's tape, in order."""
    return [line["kind"] for line in tape_lines(folder, run) if line["type"] == "request"]


@contextmanager
def alone_with(run: str) -> Iterator[None]:
    """Servers are found by their run's id: no other worker has a run of this id going meanwhile."""
    with (Path(tempfile.gettempdir()) / f"moeagent-tests-{run}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tagged_processes(tag: str) -> list[int]:
    """Pids of living processes that carry a run's tag."""
    found = []
    for proc in Path("/proc").iterdir():
        if proc.name.isdigit():
            try:
                env = (proc / "environ").read_bytes()
            except OSError:
                continue
            if f"MOEAGENT_TAG={tag}".encode() in env:
                found.append(int(proc.name))
    return found


def kill_hard(process: subprocess.Popen[str]) -> None:
    """kill -9, as a power cut would."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()
