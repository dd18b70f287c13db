"""The user's own check of a server: a command that asks it what matters and says whether that is right."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from moeagent.memory.records import Record

POLL_S = 0.2
GRACE_S = 5.0
"""After the deadline the command gets this long to end by itself."""
READ_BYTES = 64 * 1024
"""Of the end of each output: a score stands on one of the last lines."""
TOLD_CHARS = 400
NOT_FOUND = 127


class TaskResult(Record):
    """How the check went."""

    ok: bool
    exit_code: int | None
    """128 + n when signal n ended it, 127 when the program was not found; None when its time was up."""
    score: float | None = None
    """What it printed as {"score": NUMBER}; it decides nothing by itself."""
    told: str = ""
    """The end of what it said."""

    def reason(self, of_baseline: "TaskResult | None" = None) -> str:
        """In one line."""
        how = "ran out of time" if self.exit_code is None else f"ended with status {self.exit_code}"
        score = "" if self.score is None else f", score {self.score:g}"
        if self.score is not None and of_baseline is not None and of_baseline.score is not None:
            score += f" (baseline {of_baseline.score:g})"
        told = f": {self.told}" if self.told and not self.ok else ""
        return f"the task check {'passed' if self.ok else how}{score}{told}"


def run_task(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    timeout_s: float,
    on_wait: Callable[[], None] = lambda: None,
) -> TaskResult:
    """Run the command on this machine to its end; status 0 is a pass.

    `env` is added to this process's environment. `on_wait` is called several times a second; what it raises
    ends the command. When the time is up the whole process group is stopped, and the check has failed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env={**os.environ, **env}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            told = f"{error.strerror}: {error.filename}"
            return TaskResult(ok=False, exit_code=NOT_FOUND, told=told)
        try:
            code = _wait(process, timeout_s, on_wait)
        finally:
            _end(process)
        printed = _tail(out)
        code = 128 - code if code is not None and code < 0 else code
        return TaskResult(
            ok=code == 0, exit_code=code, score=parse_score(printed), told=_told(_tail(err) or printed)
        )


def parse_score(printed: str) -> float | None:
    """The number in the last line that is a JSON object with a score; None without one."""
    for line in reversed(printed.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("score"), int | float):
            return float(found["score"])
    return None


def _wait(process: subprocess.Popen[bytes], timeout_s: float, on_wait: Callable[[], None]) -> int | None:
    for _ in range(max(1, round(timeout_s / POLL_S))):
        try:
            return process.wait(POLL_S)
        except subprocess.TimeoutExpired:
            on_wait()
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop what is left of its group."""
    for number, patience_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - READ_BYTES))
    return file.read().decode("utf-8", "replace")


def _told(text: str) -> str:
    return " ".join(text.split())[-TOLD_CHARS:]
