"""A server log of any size: start-up, hours of serving with noise, and a crash near the end."""

import random
from pathlib import Path

STARTUP = """\
[2026-02-20 10:00:00] server_args=ServerArgs(model_path='/models/glm', tp_size=8, ep_size=8, moe_a2a_backend='flashinfer', mem_fraction_static=0.92, max_running_requests=2048, watchdog_timeout=300, crash_dump_folder=None)
[2026-02-20 10:00:20 TP0 EP0] Load weight begin. avail mem=94.10 GB
[2026-02-20 10:04:20 TP0 EP0] Load weight end. type=GlmMoeDsaForCausalLM, dtype=torch.bfloat16, avail mem=33.21 GB, mem usage=60.89 GB.
[2026-02-20 10:04:21 TP0 EP0] KV Cache is allocated. #tokens: 490880, KV size: 24.10 GB
[2026-02-20 10:04:22 TP0 EP0] Memory pool end. avail mem=8.1 GB
[2026-02-20 10:05:22] INFO:     Application startup complete.
[2026-02-20 10:05:40] The server is fired up and ready to roll!
"""
CRASH = """\
[2026-02-20 18:00:00 TP3 EP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 3104, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/sgl-workspace/sglang/python/sglang/srt/models/deepseek_v2.py", line 402, in forward
    hidden_states = self.mlp(hidden_states)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 3 has a total capacity of 94.97 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 93.77 GiB memory in use. Of the allocated memory 85.88 GiB is allocated by PyTorch, and 1.02 GiB is reserved by PyTorch but unallocated.

[2026-02-20 18:00:01] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
Killed
"""
ROOT = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB."
_NOISE = (
    "[2026-02-20 11:{m:02d}:{s:02d} TP0 EP0] KV cache pool is full. Retract requests. #retracted_reqs: {n}, #new_token_ratio: 0.21 -> 0.81",
    '[2026-02-20 11:{m:02d}:{s:02d}] INFO:     127.0.0.1:{p} - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
    "/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py:65: FutureWarning: The pynvml package is deprecated.",
    "[2026-02-20 11:{m:02d}:{s:02d} TP0 EP0] Input length ({p} tokens) exceeds the maximum allowed length ({n} tokens).",
)


def block(seed: int, lines: int = 4000) -> bytes:
    """Lines of ordinary serving with one line of noise in a thousand."""
    rng = random.Random(seed)
    rows = []
    for _ in range(lines):
        m, s, n, p = rng.randrange(60), rng.randrange(60), rng.randrange(4000), rng.randrange(1024, 65000)
        kind = rng.random()
        if kind < 0.001:
            rows.append(rng.choice(_NOISE).format(m=m, s=s, n=n, p=p))
        elif kind < 0.5:
            rows.append(
                f"[2026-02-20 11:{m:02d}:{s:02d} TP0 EP0] Decode batch, #running-req: {n}, #token: {p}, token usage: 0.{n:04d}, "
                f"cuda graph: True, gen throughput (token/s): {p / 7:.2f}, #queue-req: {s}, "
            )
        elif kind < 0.7:
            rows.append(
                f"[2026-02-20 11:{m:02d}:{s:02d} TP0 EP0] Prefill batch, #new-seq: {m}, #new-token: {p}, #cached-token: {n}, "
                f"token usage: 0.{n:04d}, #running-req: {n}, #queue-req: {s}, "
            )
        else:
            rows.append(
                f'[2026-02-20 11:{m:02d}:{s:02d}] INFO:     127.0.0.1:{p} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
            )
    return ("\n".join(rows) + "\n").encode()


def write_log(path: Path, size: int) -> int:
    """Write about `size` bytes; returns the line number of the root line."""
    blocks = [block(seed) for seed in range(16)]
    number = 0
    with path.open("wb") as out:
        out.write(STARTUP.encode())
        number += STARTUP.count("\n")
        at = 0
        while out.tell() < size:
            out.write(blocks[at % len(blocks)])
            number += blocks[at % len(blocks)].count(b"\n")
            at += 1
        before = CRASH[: CRASH.index(ROOT)].count("\n")
        out.write(CRASH.encode())
    return number + before + 1
