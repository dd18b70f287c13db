"""Runs the load generator as a process of its own and turns what it wrote into a rung."""

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from moeagent.memory.errors import HostError
from moeagent.tools.load.bundle import loadgen_archive
from moeagent.tools.load.figures import pack, recompute, span_us
from moeagent.tools.load.job import build_job
from moeagent.tools.load.spec import RungOutcome, RungSpec, Target

Progress = Callable[[int, int, int, float], None]
"""completed, total (0: unknown), tokens so far (one per read until they are counted), tokens per second."""

GRACE_S = 60.0
"""After the rung's own deadline the generator gets this long to parse and hand over."""


def run_rung(
    target: Target, spec: RungSpec, *, on_progress: Progress | None = None, deadline_s: float = 3600.0
) -> RungOutcome:
    """Run one rung from this machine. A dying server gives a rung with failures, never an exception.

    HostError when the load generator itself cannot work here (file limit, killed worker).
    """
    job = build_job(target, spec, deadline_s=deadline_s)
    return outcome_of(run_job(job, on_progress=on_progress, deadline_s=deadline_s), spec, job)


def run_job(job: dict[str, Any], *, on_progress: Progress | None, deadline_s: float) -> dict[str, Any]:
    """The load generator's result for one job; it is killed when it outlives the deadline and its grace."""
    with tempfile.TemporaryDirectory(prefix="moeagent-load-") as folder:
        archive = Path(folder) / "loadgen.pyz"
        archive.write_bytes(loadgen_archive())
        return run_archive(archive, job, on_progress, deadline_s)


def run_archive(
    archive: Path, job: dict[str, Any], on_progress: Progress | None, deadline_s: float
) -> dict[str, Any]:
    """One process of the load generator, from start to result."""
    process = subprocess.Popen(
        [sys.executable, str(archive)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    watchdog = threading.Timer(deadline_s + GRACE_S, kill_group, [process.pid])
    watchdog.daemon = True
    watchdog.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job).encode())
        process.stdin.close()
        return read_result(process.stdout, on_progress)
    finally:
        watchdog.cancel()
        if process.poll() is None:
            kill_group(process.pid)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def kill_group(pid: int) -> None:
    """End the generator and its workers."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def read_result(lines: Iterable[bytes], on_progress: Progress | None) -> dict[str, Any]:
    """The result among the generator's lines; HostError when it cannot work, or ends without one."""
    for line in lines:
        message = json.loads(line)
        if "progress" in message and on_progress is not None:
            on_progress(*message["progress"])
        elif "error" in message:
            raise HostError(f"the load generator cannot run: {message['error']}")
        elif "result" in message:
            result: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(message["result"])))
            return result
    raise HostError("the load generator ended without a result: see its messages above, then run again")


def outcome_of(result: dict[str, Any], spec: RungSpec, job: dict[str, Any]) -> RungOutcome:
    """Rung and raw results; a server that never took a connection gives one failure and no figures."""
    if "refused" in result:
        result = nothing_sent(result["refused"], result["detail"])
    raw = pack({"plan": plan_of(spec, job), **result})
    return RungOutcome(recompute(raw), raw, window_of(result))


def window_of(result: dict[str, Any]) -> tuple[float, float] | None:
    """First send and last token in Unix time; None when nothing was sent."""
    answers = result["answers"]
    if "began_unix_s" not in result or not answers:
        return None
    first = result["began_unix_s"] + min(answer["send"] for answer in answers) / 1e6
    return first, first + span_us(answers) / 1e6


def nothing_sent(kind: str, detail: str) -> dict[str, Any]:
    """The result of a rung whose connections could not be opened."""
    answer: dict[str, Any] = dict.fromkeys(("due", "out", "prompt", "cached", "tokens"))
    answer |= dict.fromkeys(("i", "slot", "send", "end", "asked", "http", "crowded"), 0)
    answer |= {"kind": kind, "detail": detail, "finish": "", "gaps": []}
    stopped = f"no connection to the server ({detail})"
    return {"answers": [answer], "health": [], "flushed": "", "warmup": [], "unsent": 0, "stopped": stopped}


def plan_of(spec: RungSpec, job: dict[str, Any]) -> dict[str, Any]:
    """What the figures need to know about the rung, kept beside the results."""
    return {
        "concurrency": spec.concurrency,
        "requests": job["requests"] or None,
        "rate": spec.arrivals.rate if spec.arrivals else None,
        "arrivals": spec.arrivals.kind if spec.arrivals else None,
        "slo": spec.slo.model_dump() if spec.slo else None,
        "seed": spec.seed,
        "roofline_tok_s": spec.roofline_tok_s,
        "network_rtt_ms": spec.network_rtt_ms,
    }
