"""`python3 loadgen.pyz < job.json`: one rung of load, as JSON lines on standard output.

`{"progress": [completed, total, events, events_per_s]}` while the rung runs and, last, `{"result": TEXT}`,
where TEXT is base64 of zlib of the JSON of every request. A job that cannot run at all ends with
`{"error": MESSAGE}` and exit status 2. Nothing else is printed, and never a header's value.
"""

from __future__ import annotations

import base64
import json
import resource
import signal
import sys
import time
import zlib
from collections.abc import Callable

from moeagent.tools.load.generator.calls import flush
from moeagent.tools.load.generator.crew import Crew
from moeagent.tools.load.generator.request import Answer, Job, clock


def supervise(job: Job, emit: Callable[[Answer], None]) -> Answer:
    """Run the rung and return everything that came back."""
    deadline = clock() + int((job["deadline_s"] + 30) * 1e9)
    total = job.get("requests") or 0
    began = clock()

    def progress(latest: list[Answer]) -> None:
        events = sum(m["events"] for m in latest)
        seconds = max(1e-9, (clock() - began) / 1e9)
        emit({"progress": [sum(m["completed"] for m in latest), total, events, round(events / seconds, 1)]})

    crew = Crew(job)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        ready = crew.gather("ready", deadline, lambda _: None)
        refused = [m for m in ready if "refused" in m]
        if refused:
            return {"refused": refused[0]["refused"], "detail": refused[0]["detail"]}
        flushed = flush(job)
        crew.latest.clear()
        began = clock() + 50_000_000
        began_unix_s = time.time() + 0.05
        crew.order(do="start", at=began)
        parts = crew.gather("answers", deadline, progress)
    finally:
        crew.dismiss()
    for worker, part in enumerate(parts):
        for answer in part["answers"]:
            answer["worker"] = worker
    answers = sorted((a for part in parts for a in part["answers"]), key=lambda a: a["send"])
    return {
        "answers": answers, "health": [part["health"] for part in parts], "flushed": flushed,
        "warmup": [message["ready"] for message in ready], "unsent": sum(part["unsent"] for part in parts),
        "stopped": next((part["stopped"] for part in parts if part["stopped"]), ""),
        "began_unix_s": began_unix_s,
    }  # fmt: skip


def raise_file_limit(needed: int) -> None:
    """Allow as many connections as the rung has slots; ValueError when the host forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed + 64
    if soft < wanted and (hard == resource.RLIM_INFINITY or hard >= wanted):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    elif soft < wanted:
        raise ValueError(
            f"{needed} connections need {wanted} open files, the limit is {hard}: raise `ulimit -n`"
        )


def main() -> int:
    """Read the job, run it, write the result."""

    def emit(message: Answer) -> None:
        sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    job: Job = json.load(sys.stdin)
    try:
        raise_file_limit(job["concurrency"])
        outcome = supervise(job, emit)
    except BrokenPipeError:
        return 1  # whoever started the rung is gone, and with it the need for a result
    except (ValueError, OSError, EOFError) as error:
        emit({"error": str(error)})
        return 2
    packed = zlib.compress(json.dumps(outcome, separators=(",", ":")).encode(), 1)
    emit({"result": base64.b64encode(packed).decode()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
