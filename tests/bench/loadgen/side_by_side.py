"""Every client against the truth server, in turn on one core: `python -m bench.loadgen.side_by_side`.

The server is alone on core 0 and the client on core 1, both in a real-time class where the user may: on a
shared machine the figures otherwise show the other users. Run it from tests/.
"""

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.loadgen.clients import Client, Load, incumbents, ours
from bench.loadgen.true_figures import Figures, true_figures
from bench.loadgen.truth import TruthServer, can_be_realtime
from bench.loadgen.usage import CpuSampler

SERVER_CORE, CLIENT_CORE = "0", "1"


class Result(NamedTuple):
    """What a client said beside what was true."""

    client: str
    said: Figures
    true: Figures
    run_ms_per_1k: float
    """CPU milliseconds per 1,000 tokens between first request and last token."""
    total_cpu_s: float
    """Of the whole process, start-up and parsing included."""

    @property
    def errors(self) -> Figures:
        """Throughput and ITL as a share of the truth, TTFT in milliseconds."""
        said, true = self.said, self.true
        return Figures(
            said.tok_s / true.tok_s - 1, said.ttft_p50 - true.ttft_p50, said.ttft_p99 - true.ttft_p99,
            said.itl_p99 / true.itl_p99 - 1,
        )  # fmt: skip


def pinned(core: str, priority: int) -> tuple[str, ...]:
    """Prefix that puts a command on one core, in a real-time class where that is permitted."""
    realtime = ("chrt", "-f", str(priority)) if can_be_realtime() else ()
    return ("taskset", "-c", core, *realtime)


def run_client(client: Client, server: TruthServer) -> Result:
    """One client's run; RuntimeError with its messages when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [*pinned(CLIENT_CORE, 10), *client.argv],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    sampler = CpuSampler(process.pid)
    out, err = process.communicate(client.stdin, timeout=300)
    sampler.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(f"{client.name} ended with {process.returncode}: {err.decode()[-800:]}")
    sent = server.sent()
    start, end = min(s.first_byte_ns for s in sent), max(s.token_ns[-1] for s in sent if s.token_ns)
    tokens = sum(len(s.token_ns) for s in sent)
    total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    run_ms = sampler.between(start, end) * 1e6 / tokens
    return Result(client.name, client.read(out), true_figures(sent), run_ms, total)


def compare(load_of: "dict[str, int]", *, only: str = "", step: int = 0) -> list[Result]:
    """All clients that are here, in one session against one server."""
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with TruthServer(folder, ttft_ms=50, itl_ms=20, prefix=pinned(SERVER_CORE, 20)) as server:
            load = Load(server.url, **load_of)
            for client in [ours(load, folder), *incumbents(load, folder)]:
                if only and only not in client.name:
                    continue
                server.reset(step=step)
                time.sleep(1.0)
                try:
                    results.append(run_client(client, server))
                except (RuntimeError, OSError, KeyError, subprocess.TimeoutExpired) as error:
                    print(f"{client.name}: not measured: {error}")
    return results


def table(results: Sequence[Result]) -> str:
    """The comparison as Markdown."""
    lines = [
        "| client | true tok/s | tok/s err | TTFT p50 err | p99 err ms | ITL p99 err | CPU ms/1k | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        e = r.errors
        lines.append(
            f"| {r.client} | {r.true.tok_s:.0f} | {e.tok_s:+.2%} | {e.ttft_p50:+.2f} | {e.ttft_p99:+.1f} "
            f"| {e.itl_p99:+.1%} | {r.run_ms_per_1k:.1f} | {r.total_cpu_s:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--concurrency", type=int, default=1024)
    parser.add_argument("--requests", type=int, default=3072)
    parser.add_argument("--only", default="")
    parser.add_argument("--step", type=int, default=0, help="1: all streams advance together")
    chosen = parser.parse_args()
    asked = {"concurrency": chosen.concurrency, "requests": chosen.requests}
    print(table(compare(asked, only=chosen.only, step=chosen.step)))
